"""Costs of an answer and their limits: its budget, the bill, the clock of its work, and a signal to stop.

A session (`kinodex.agent.session`) counts and enforces them; calls of models end at them.
"""
