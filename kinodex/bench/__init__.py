"""Measurements on this machine, as ratios within one run. `kinodex bench`.

A file a measurement; `kinodex.cli.lab` is their command line.
"""
