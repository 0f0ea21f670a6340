"""Real servers on loopback, and their clients: chat completions, rules in place of a model, files, a hub, S3, Ray, MCP.

May import everything; tests start them.
"""
