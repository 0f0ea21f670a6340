"""Requests that several agents share; those of one agent are in its folder under `agent.variants`.

May import `agent.core` and `agent.errors`. Names and fields of requests, and the docstrings of replies, which are sent
as descriptions of their schemas, are part of the keys of traces and cached replies.
"""
