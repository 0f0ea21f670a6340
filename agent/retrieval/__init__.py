"""The scale on which matches of pictures and of words are compared, and the matches of words.

May import `agent.core`; the environment searches with it.
"""
