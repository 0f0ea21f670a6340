"""Archives of what kinodex wrote at some commit (tests/data/README.md), read with later code.

May import everything of the project.
"""
