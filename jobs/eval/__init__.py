"""Evaluation: contenders compared on the same items of a benchmark, their results written, scored and drawn.

Benchmarks are read by `readers`; searches and ranges are measured by `moments`.
"""
