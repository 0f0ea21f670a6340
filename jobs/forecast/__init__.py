"""Forecasts: what a command that asks models will cost, before anything is sent. `--dry-run`.

May import all of `agent`, of `index` the library and its rows, and of `jobs` what it forecasts: the plans of
`jobs.evaluation`, the samples of `jobs.benchmarks` and `jobs.synthetic`, the settings of `jobs.train`, and
`jobs.model_choice`.
"""
