"""Predictions made elsewhere, published or by another tool, as contenders of a run.

May import `jobs.evaluation.run`, `jobs.benchmarks` and the answer reader of `agent.requests`.
"""
