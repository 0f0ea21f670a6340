"""Evaluation of searches and of grounding: ranked moments and ranges against the true ones of a benchmark of moments.

Beside `jobs.evaluation.run`, which is for questions. May import `jobs.benchmarks`, `jobs.ground`,
`jobs.evaluation.score`, `jobs.evaluation.report`, `agent` and `index`.
"""
