"""Requests that several agents share; those of one agent are beside it under `agent.variants`.

A request is a question to a model with the form of its reply.
"""
