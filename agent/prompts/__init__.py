"""Prompts: the templates of requests, and the function that renders them.

May import `agent.core`. A prompt is part of the key of cached replies: its text changes only on purpose.
"""
