"""Videos of a library for other programs: sources for their readers, and folders of files that `kinodex export` writes.

May import jobs.errors and jobs.console, and whatever of index and pipeline an export reads. A module a format.
"""
