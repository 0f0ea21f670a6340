"""Embedding spaces: open_clip models by name, their weights, preprocessing and arithmetic, with and without torch.

`photo` holds the small space that kinodex brings.
"""
