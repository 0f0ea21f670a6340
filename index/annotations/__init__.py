"""Rows that are added to videos after their ingest, stage by stage, and captions that agents keep of their parts.

May import index.videos, index.store and index.embedding.
"""
