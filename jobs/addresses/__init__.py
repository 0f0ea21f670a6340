"""Addresses of videos: updated where an ingest finds a moved file, mapped to another prefix, and looked up.

A video is its bytes (`content_id`), so the same bytes in another place are the same video. Its row in `videos` has one
address, from which it is played; `sources` has every place where an ingest found it.
"""
