"""Grounding: the ranges of time that fit a text best, and what may be said of them. `kinodex ground`.

By search alone, or with an agent, whose evidence the ranges then are.
"""
