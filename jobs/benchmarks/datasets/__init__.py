"""Readers of benchmarks, one a module: from the published annotation file to samples.

They may import `jobs.benchmarks`, the questions of `agent` and `jobs.errors`; the registry lists them.
"""
