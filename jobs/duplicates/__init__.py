"""Near-duplicates: videos that show the same, whole or in part, found by their frame vectors along time.

Few frames of each video give the pairs that may share a part; each pair is aligned by its diagonals.
"""
