"""Search of a library as the page shows it: moments, by video, each with the reason why it was found; and ranges.

May import index, agent, `jobs.ground` and the shared modules of jobs, and nothing else of the viewer.
"""
