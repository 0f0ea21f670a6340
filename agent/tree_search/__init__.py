"""The search tree that EEA and VCA share: segments, anchors, coverage of frames, memory.

May import the session, requests and traces; no agent.
"""
