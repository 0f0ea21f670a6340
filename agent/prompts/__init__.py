"""Prompts: the templates of requests, and the chat messages with the rendered text and its frames.

May import `agent.core`. A prompt is part of the key of cached replies: its text changes only on purpose.
"""
