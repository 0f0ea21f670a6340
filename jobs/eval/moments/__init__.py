"""Searches and grounding measured: every contender's ranked moments against the true ones of a benchmark of moments.

A search of the benchmark whose videos the library holds is a case. Each contender solves every case, its results are
kept line by line, and figures of ranked lists, ranges and verdicts are means over the cases.
"""
