"""Forecasts: what a command that asks models will cost, before anything is sent. `--dry-run`.

May import `jobs.evaluation`, `jobs.annotate`, `jobs.model_choice` and all of `agent`, and of `index` the library.
"""
