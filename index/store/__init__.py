"""Lance: the tables of a library, schema, filters, indexes and leases, without knowledge of what rows mean.

May import index.embedding, for the fingerprint of a space.
"""
