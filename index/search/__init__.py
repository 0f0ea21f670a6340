"""Search by vector and by words, fusion by rank, and search of one video in memory.

May import index.annotations, index.videos and index.store.
"""
