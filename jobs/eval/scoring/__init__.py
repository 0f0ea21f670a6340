"""Scores of a run: answers against their targets, by the chosen option or by a judge, and means with their errors.

A target is met in `answers` and `judge` alone.
"""
