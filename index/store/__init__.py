"""Lance: the tables of a library, schema, filters, indexes and leases, without knowledge of what rows mean.

The only folder that imports lance: other files of `index` have it from `quiet_lance`, or import only its types.
"""
