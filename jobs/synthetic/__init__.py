"""Films with known answers: `kinodex sample` and `kinodex demo`, and the training and scoring of the built-in model.

May import `agent`, `index`, `pipeline`, `jobs.ingest` and `jobs.console`; `world` below it draws.
"""
