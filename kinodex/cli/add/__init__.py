"""`kinodex add` and `kinodex extract`: results of more models for the videos of a library.

`app` makes a command of each stage, `run` adds a stage, and `report` shows what was done.
"""
