"""Embedding spaces: open_clip models by name, their weights, preprocessing and arithmetic, with and without torch.

`builtin` holds the small space of the drawn films.
"""
