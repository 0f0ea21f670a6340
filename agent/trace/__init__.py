"""A run as events: written to a trace, replayed from it, and continued by a follow-up question.

May import `agent.core`, `agent.prompts` and `agent.environment`; nothing of a single agent.
"""
