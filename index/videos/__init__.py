"""Rows of videos: write them, count them, make them visible, find a video, and log the runs of ingest.

May import index.store, and index.embedding for the fingerprint of a space.
"""
