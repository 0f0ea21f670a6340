"""`kinodex eval`: compare agents on a benchmark; each command parses options, calls `kinodex.jobs.eval` and prints.

`app` lists the commands. What they need is imported when they run.
"""
