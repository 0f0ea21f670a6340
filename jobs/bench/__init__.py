"""Kinodex bench."""
