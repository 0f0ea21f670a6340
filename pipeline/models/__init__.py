"""Local models of the optional stages: captions, detections with tracks, speech and its voices.

May import `pipeline.decoding` (to open a file for its sound) and `pipeline.errors`.
"""
