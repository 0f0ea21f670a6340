"""Subtitles of a video as lines: sidecar files and text tracks inside it.

Tracks: SubRip, ASS, WebVTT, mov_text, and WebVTT in MP4.
"""
