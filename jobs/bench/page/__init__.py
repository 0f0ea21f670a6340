"""`kinodex bench page`: how soon the viewer's pages are there for a library of many videos.

May import `index`, `jobs.viewer` and the made-up rows of `jobs.bench.synthetic_library`.
"""
