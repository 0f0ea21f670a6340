"""Pages of `kinodex view`: traces, runs and libraries in a browser, from a local server or as one HTML file.

`api` gives the data by keys, the `*_view` modules shape it, `server` and `export` hand it to the page in `static`.
May import index, agent, and of jobs the evaluation's reading side; nothing here opens a video file.
"""
