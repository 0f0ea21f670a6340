"""Ranges in which something happens, looked for by an agent: a question of the server whose evidence they are.

May import `jobs.ground`, the viewer's view of ranges, and the questions of `jobs.serve`.
"""
