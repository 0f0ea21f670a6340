"""VideoSeek: its steps of thought and action, its requests and its tools.

May import what all agents share; no other agent.
"""
