"""Subtitles: text lines from sidecar files and from text tracks inside a video.

May import `pipeline.decoding`, `pipeline.sources` and `pipeline.errors`.
"""
