"""Containers, timestamps, decoders: one file -> frames at instants."""
