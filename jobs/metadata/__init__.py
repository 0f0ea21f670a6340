"""Columns of a library's own, from tables, from names of paths, and from what lies in and beside the files of videos.

report = set_metadata(library, read_metadata(["cameras.csv"], "{camera}/{day}/{_}"))
"""
