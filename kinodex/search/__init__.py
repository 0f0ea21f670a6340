"""Searches of a library for every face: by words, by pictures and by vectors.

`finder` carries them out; `places` says where a search looks.
"""
