"""The command line: a file a command or a family of them; each parses, calls Python and prints.

`main` lists the commands; `options` and `model_options` have the options that several share, `library_tables`,
`hit_tables`, `figure_tables` and `tree_view` what they print.
"""
