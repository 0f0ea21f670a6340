"""The parts of a film above its shots: segments joined into scenes, and scenes into chapters.

Pure functions of arrays and texts: no model, no file, no row of a library. May import `pipeline` alone.
"""
