"""The agents: a folder for each paper, with its algorithm, its requests and its tools, and one for the controls.

`agent.catalogue` lists them; a user's own is a file of its own (`--agent FILE.py:NAME`).
"""
