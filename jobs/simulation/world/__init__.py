"""A world that does not exist: videos, questions and a model drawn from stated assumptions.

May import `agent` and `index`; nothing here is a result about a real model.
"""
