"""VideoSeek (arXiv 2603.20185).

`agent` has the steps, `tools` overview, skim and focus.
"""
