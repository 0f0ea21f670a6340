"""Score, judge, aggregate, compare."""
