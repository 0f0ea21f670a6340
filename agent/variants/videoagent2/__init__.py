"""VideoAgent2 (arXiv 2504.04471).

`agent` has Algorithm 1, `tools` what it calls, `requests` what it asks of models.
"""
