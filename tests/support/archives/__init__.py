"""Archives of what kinodex wrote at some commit (tests/data/README.md): to make one, and to read it with later code.

May import everything of the project.
"""
