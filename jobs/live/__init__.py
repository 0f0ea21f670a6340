"""Watch a source that grows: its frames are rows of a library within seconds. `kinodex watch --live`.

An unbroken stretch of a source, of at most an hour, is one video that grows: a part. So an hour of a camera is one film
for search and for agents, and a day is 24. Each few seconds the new frames, their vectors and one segment are appended,
and then the part's own row is replaced, by which readers see them. All that is done under the lease of an ingest, which
is free in between: other ingests, other cameras and `kinodex maintain` have their turn. A process that dies in the
middle leaves rows that no row promises; the next sweep deletes them, and the next process goes on from the row.

What a process needs to go on is a row of `runs`: where it read, and the notices of standing queries that nobody took.
"""
