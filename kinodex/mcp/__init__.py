"""A library as tools of an assistant, over the Model Context Protocol. `kinodex mcp`.

`server` holds the tools, `replies` their words.
"""
