"""Question, budget, and the protocol of requests and replies.

May import `agent.errors`; nothing else of the project.
"""
