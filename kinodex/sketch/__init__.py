"""The sketch world: films drawn by code with questions whose answers are known, for the demo, samples and tests.

`tests/sketch` scores the built-in space on it; `tests/support/world` measures agents on it.
"""
