"""The command line: one file for each command or group; it parses, calls and prints.

May import everything. Commands import what they need when they run, so that `--help` is quick.
"""
