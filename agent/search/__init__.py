"""The search of agents in a tree of segments: where to look, in what order, and what is remembered.

What one agent alone does stands in `kinodex.agent.variants`.
"""
