"""Plan a run, solve its samples in one or many processes, and keep the results in a folder.

May import `jobs.benchmarks`, `agent` and `index`; the solving side (`solve`, `types`) never sees a target.
"""
