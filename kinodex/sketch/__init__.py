"""The sketch world: films drawn by code with questions whose answers are known, and what trains and scores its space.

A stand-in for real videos and models, in demo and tests.
"""
