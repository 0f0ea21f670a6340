"""Readers of benchmarks whose answers are ranges of time, one a module: from the published file to moment samples.

They may import `jobs.benchmarks` and `jobs.errors`; `jobs.benchmarks.moment_registry` lists them.
"""
