"""Rows that are added to videos after their ingest: captions, detections, speech, vectors, captions of clips.

May import index.videos, index.store and index.embedding.
"""
