"""EEA, the exploration-exploitation agent: its algorithm, and the fusion of rewards with query scores.

May import `agent.tree_search` and what all agents share; no other agent.
"""
