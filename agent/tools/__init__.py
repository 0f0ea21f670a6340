"""Tools that agents of several papers call: captions on demand, detection, uniform frames.

May import the session, requests, traces and `agent.tree_search.frame_choice`; no agent.
"""
