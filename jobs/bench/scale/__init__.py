"""The driver of an ingest at scale: its last step and its coordinator, by the size of the library, with made-up frames.

May import all of `pipeline` and `index`, and `jobs.ingest`.
"""
