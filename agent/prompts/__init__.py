"""Prompts: the text of requests, rendered from the templates of agent/templates, and the chat messages that carry it.

A prompt is part of the key of cached replies: its text changes only on purpose.
"""
