"""Commands that find things in a library beyond a list of hits: ranges, and near-duplicates.

May import `jobs.ground`, `jobs.duplicates` and `jobs.cli.options`.
"""
