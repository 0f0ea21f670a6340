"""Real servers of files on loopback: films that come by ranges, and folders.

May import everything; tests start them.
"""
