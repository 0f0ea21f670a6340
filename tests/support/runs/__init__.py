"""Evaluation runs, reports and results made up or made small.

May import everything of the project.
"""
