"""LongVideoAgent: its master and the episode it acts in, its requests, and its rewards and rollouts for training.

May import what all agents share; no other agent.
"""
