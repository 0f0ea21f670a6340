"""LongVideoAgent (arXiv 2512.20618).

`agent` has Algorithm 1; `episode` is shared with training (`jobs.train`).
"""
