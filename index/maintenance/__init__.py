"""Functions that check, tidy and repair a whole library: audit, sweep, maintain, purge, remove.

May import everything in index; nothing else in index imports it.
"""
