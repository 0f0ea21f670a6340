"""Benchmarks as they are published: their annotation files read into the same samples, each with its target.

`datasets` has one reader a benchmark. May import `agent.core` and `index.rows`, and nothing of `jobs.evaluation`.
"""
