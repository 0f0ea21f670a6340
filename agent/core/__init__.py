"""Question, budget, the protocol of requests and replies, and reply schemas.

May import `agent.errors`; nothing else of the project.
"""
