"""A run as events: written to a trace, replayed from it, and continued by a follow-up question.

Events are shown live too.
"""
