"""Kinodex ingest, local or on Ray."""
