"""The command line: a file a family of commands; each parses, calls Python and prints.

`main` lists the commands; `options` has the options that several share, `show`, `tables` and `tree_view` what they
print.
"""
