"""VCA, the video curious agent (ICCV 2025).

`agent` has the algorithm; without a tree single frames are chosen.
"""
