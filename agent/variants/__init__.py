"""The agents: a file or two for each paper, with its algorithm, its requests and its tools, and one for the controls.

`agent.ask` lists them; a user's own is a file of its own (`--agent FILE.py:NAME`).
"""
