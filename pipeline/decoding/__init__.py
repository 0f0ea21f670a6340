"""Containers, timestamps and decoders: from one local file to the frames shown at sample instants, with exact times.

`open.py` is the entry, `pyav_reader.py` the reference. May import `pipeline.images`, `pipeline.playlists`
and `pipeline.errors`.
"""
