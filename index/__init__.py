"""The library: Lance tables, embedding spaces and search.

Knows no codec and no language model; imports no other room.
"""
