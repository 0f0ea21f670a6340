"""The search tree that EEA and VCA share: its segments and memory, and the choice of frames.

May import the session, requests and traces; no agent.
"""
