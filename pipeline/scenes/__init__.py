"""The parts of a film above its shots: segments joined into scenes, and scenes into chapters.

All but `writer`, which loads a local language model, are pure functions. May import `pipeline` alone.
"""
