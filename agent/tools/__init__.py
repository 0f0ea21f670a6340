"""Tools that agents of several papers call: captions on demand, detection, uniform frames.

May import the session, requests, traces and `agent.tree_search.coverage`; no agent.
"""
