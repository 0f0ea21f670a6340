"""Long runs over a library, here or on Ray: ingest, additions, evaluation, export, training.

They join pipeline, index and agent, can be killed and run again, and serve nothing.
"""
