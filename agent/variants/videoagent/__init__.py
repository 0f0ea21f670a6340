"""VideoAgent (arXiv 2403.10517).

`agent` has Algorithm 1, `requests` what it asks of models.
"""
