"""Kinodex add."""
