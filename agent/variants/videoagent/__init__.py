"""VideoAgent: its rounds of answering and retrieval, and its requests.

May import what all agents share; no other agent.
"""
