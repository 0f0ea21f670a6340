"""Find and fetch video files (local, fsspec)."""
