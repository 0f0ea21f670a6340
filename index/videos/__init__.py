"""Rows of a video: write, commit (make visible), read, ingest log."""
