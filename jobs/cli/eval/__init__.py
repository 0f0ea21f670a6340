"""The commands of `kinodex eval`: parse options, call `jobs.evaluation` or `jobs.simulation`, print.

May import everything; what they need is imported when they run.
"""
