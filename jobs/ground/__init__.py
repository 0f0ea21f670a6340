"""Grounding: ranges of time in which something happens, with scores, or that it happens nowhere. `kinodex ground`.

By search alone, or with an agent, whose evidence the ranges then are. May import `agent`, `index` and
`jobs.export.moments`.
"""
