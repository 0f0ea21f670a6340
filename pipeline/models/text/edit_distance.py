"""Edit distance of texts (Levenshtein 1966): insertions, deletions and substitutions of characters."""

from __future__ import annotations


def edit_distance(one: str, other: str) -> int:
    """Count the fewest single-character edits that turn one text into the other."""
    if len(one) < len(other):
        one, other = other, one
    before = list(range(len(other) + 1))
    for row, letter in enumerate(one, start=1):
        now = [row]
        for column, against in enumerate(other, start=1):
            now.append(min(before[column] + 1, now[-1] + 1, before[column - 1] + (letter != against)))
        before = now
    return before[-1]


def similarity(one: str, other: str) -> float:
    """Compare two texts: 1 for equal ones, 0 for those without a letter in its place."""
    longest = max(len(one), len(other))
    return 1 - edit_distance(one, other) / longest if longest else 1.0
