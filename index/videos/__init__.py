"""Rows of videos: write them, count them, make them visible, find a video, and log the runs of ingest.

Uses store.
"""
