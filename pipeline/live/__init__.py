"""A source that grows, read as it comes: a file that is being written, an HLS playlist, or an RTSP address.

A playlist is read by these modules, not by FFmpeg: its segments have to lie on its own server, without keys.
"""
