"""Near-duplicates: videos that show the same, whole or in part, found by their frame vectors along time.

May import `index` and `jobs.errors`; numpy alone does the comparing.
"""
