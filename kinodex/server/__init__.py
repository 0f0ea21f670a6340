"""The parts that every server of kinodex shares, that of pages and that of MCP.

`guards` refuse requests, `responses` answer them, and `sockets` listen.
"""
