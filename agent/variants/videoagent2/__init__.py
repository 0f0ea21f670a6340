"""VideoAgent2: its plan and bank of notes, its requests and its five tools.

May import what all agents share; no other agent.
"""
