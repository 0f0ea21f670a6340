"""The sketch world: films drawn by code with questions whose answers are known.

`tests/world` tells stories in it, `tests/sketch` scores the built-in space on it, `tests/support/world` agents.
"""
