"""EEA: a search led by queries and rewards, weighed by their entropy.

`agent` has the algorithm, `scores` the fusion.
"""
