"""The commands of `kinodex add`, one a module: parse options, call `jobs.annotate`, print.

`app` registers them; `options`, `run` and `report` are what they share. May import everything; what they need is
imported when they run.
"""
