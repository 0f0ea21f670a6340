"""Videos of a library, and moments in them, for other programs: what `kinodex export` and the links of a page write.

May import jobs.errors, jobs.console and jobs.open_library, whatever of index and pipeline an export reads, and
agent.trace for the evidence of an answer. A folder for each kind of thing, a module a format.
"""
