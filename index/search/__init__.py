"""Search by vector and by words, fusion by rank, and search of one video in memory.

Uses store, and rows of the room.
"""
