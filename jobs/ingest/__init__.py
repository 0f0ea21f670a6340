"""Ingest: many sources into one library, on threads of this process or on Ray. `kinodex ingest`.

`run` tells the story; the coordinator hands out the work and workers do it.
"""
