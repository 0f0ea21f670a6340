"""The commands of `kinodex export`, a file each: parse options, call `jobs.export`, print.

May import jobs.export, jobs.cli.options, jobs.console, jobs.errors and index.
"""
