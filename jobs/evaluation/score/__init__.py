"""Score results against their targets, judge free-form answers, aggregate a report, and compare runs.

May import `jobs.evaluation.run` and `jobs.benchmarks`.
"""
