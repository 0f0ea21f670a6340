"""Towers of a space: exported once for this machine, embedding on its CPU, and kept with each library.

Where the cache lacks the towers of a model (`index/spaces/export.py`), a child process makes them, so that this one
imports neither torch nor open_clip, now or later. Frames wait for the image tower, which takes less than importing
torch a second time would; the text tower is made beside them. What cannot be exported is said in a line.
"""
