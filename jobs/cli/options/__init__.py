"""Options that several commands share.

May import typer, and nothing heavy: every start of the command line imports this folder.
"""
