"""`kinodex bench prefix`: the share of the agents' prompts that a server finds in its cache of prefixes.

`prompts` makes tokens of requests, `cache` is a server's cache by the published rules, `measure` runs both over traces.
"""
