"""The built-in model: it answers from a library's vectors by a few rules, with no language model.

May import the requests that it answers (of `agent.requests` and the variants), `agent.core` and the environment.
"""
