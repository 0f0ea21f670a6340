"""Sidecar and embedded text."""
