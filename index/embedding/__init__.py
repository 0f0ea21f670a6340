"""Embedding spaces: open_clip models by name, their weights, preprocessing and arithmetic.

May import index.errors alone; torch and open_clip load on first use.
"""
