"""Requests and replies: the border between agents and the models that answer them.

Questions, and the parts of videos that requests are about, belong to it.
"""
