"""Scenes and chapters of one video: what a library knows of them, and their titles and summaries by a model.

`jobs.annotate.summaries` is the stage. May import `pipeline`, `index` and `agent`'s requests and models.
"""
