"""Models that answer requests: a language model behind an endpoint or in this process, and a few rules (`rules`).

Uses requests and prompts; knows no agent but in `rules`.
"""
