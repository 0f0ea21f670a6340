"""The parts of a film above its shots: segments joined into scenes, scenes into chapters, and titles of them.

Pictures and words are weighed together, without a model; a local model writes the titles.
"""
