"""The agent: typed questions to models over a library that was indexed once; it never opens a video.

May import `index`, and nothing of `pipeline` or `jobs`.
"""
