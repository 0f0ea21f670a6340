"""The agents: one folder for each paper, with its algorithm, its requests and its tools, and one for the controls.

May import all of `agent` below; no agent imports another, and only `registry` imports them.
"""
