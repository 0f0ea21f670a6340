"""Models of sentences: lines of text as unit vectors, by transformers once, and for searches without torch.

May import index.errors and its neighbours in index.embedding. torch and transformers load only inside functions.
"""
