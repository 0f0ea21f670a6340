"""VideoTree: its tree of captions, its request, and k-means of frames.

May import what all agents share; no other agent.
"""
