"""Kino, an agent of our own.

`agent` has the algorithm, `allotment` the choice of frames, `requests` what it asks a model, `log` what it keeps.
"""
