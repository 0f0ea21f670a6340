"""The drawn world of the tests: story films of which everything is known, and questions about them.

Films of shots that are drawn by themselves are in `sketch`.
"""
