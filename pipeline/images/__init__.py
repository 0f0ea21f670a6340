"""Decoded frame -> RGB, JPEG, model input."""
