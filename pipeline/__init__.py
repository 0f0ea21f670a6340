"""One video in, rows out: sources, decoding, sampling, subtitles, and local models for the optional stages.

Knows no library and no cluster; imports no other room.
"""
