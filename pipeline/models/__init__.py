"""Local transformers models of the optional stages: captions, detections with tracks, and speech.

May import `pipeline.decoding` (to open a file for its sound) and `pipeline.errors`.
"""
