"""Moments: ranges of videos with a label, the one thing that all kinds of export but datasets are made of.

May import index, agent.trace, jobs.errors and jobs.open_library.
"""
