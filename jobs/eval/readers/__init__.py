"""Readers of benchmarks as they are published: from an annotation file to items, each with its target.

`jobs.eval.benchmarks` lists them.
"""
