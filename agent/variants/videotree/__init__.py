"""VideoTree, a tree of captions (CVPR 2025, arXiv 2405.19209).

`agent` has the algorithm, the others its clusters and its request.
"""
