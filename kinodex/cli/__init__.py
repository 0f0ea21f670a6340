"""The command line: a file a family of commands; each parses, calls Python and prints.

`main` lists the commands; what several print is in `show` and `tree_view`.
"""
