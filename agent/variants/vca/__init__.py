"""VCA: its tree search, and its ablation without a tree with the request of that.

May import `agent.tree_search` and what all agents share; no other agent.
"""
