"""The sketch world: films drawn by code with questions whose answers are known, for the demo, samples and tests.

`tests/sketch` trains and scores it; `tests/support/world` measures agents on it.
"""
