"""`kinodex bench`: speed of decoders, ingest, search and evaluation on this machine, as ratios within one run.

May import all of `pipeline` and `index`, and `jobs.ingest`, `jobs.evaluation`, `jobs.synthetic`.
"""
