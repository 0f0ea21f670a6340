"""Search for words that forgives typos: in the query, and in what a model read off a picture.

Lance compares terms by edit distance (Levenshtein) only where it is given as a number, and only in rows that the index
of words knows; `refresh` sees to that at the end of each run.
"""

from __future__ import annotations

import regex

from index.search.fusion import plain_letters
from index.search.query import Rows
from index.store.database import Tables
from index.store.filters import Filter
from index.store.quiet_lance import BooleanQuery, MatchQuery, Occur

WORD = regex.compile(r"[^\W_]+")
LEAST_LETTERS, MANY_LETTERS = 4, 8
MOST_LETTERS = 100
"""Lance cannot compare longer terms by distance: from some 200 letters on it fails."""


def forgiving_rows(tables: Tables, name: str, text: str, columns: list[str], where: Filter | None, k: int) -> Rows:
    """Fetch the `k` best rows, by BM25, that hold every longer word of a text, each with a typo or two.

    None where the text has no such word, or wants words to follow each other ("quotes").
    """
    query = forgiving_query(text)
    if query is None:
        return []
    found = tables.rows(name, where, [*columns, "_score"], full_text_query=query, prefilter=True, limit=k)
    rows: Rows = found.to_pylist()
    return rows


def forgiving_query(text: str) -> BooleanQuery | None:
    """Make a query that asks for every word of at least four letters; shorter ones only raise the score.

    Scripts without upper and lower case are matched exactly: their words are short, and the index splits them itself.
    """
    words = dict.fromkeys(WORD.findall(plain_letters(text)))  # as the index has them: Lance does not do it here
    distances = {word: _distance(word) for word in words}
    if '"' in text or not any(distances.values()):
        return None
    return BooleanQuery(
        [
            (Occur.MUST if len(word) >= LEAST_LETTERS else Occur.SHOULD, MatchQuery(word, "text", fuzziness=distance))
            for word, distance in distances.items()
        ]
    )


def _distance(word: str) -> int:
    """Letters that may be wrong: 1 of four to seven, 2 of more; none in a number, where one changes what is meant."""
    if not LEAST_LETTERS <= len(word) <= MOST_LETTERS or word.lower() == word.upper():
        return 0
    return 1 if len(word) < MANY_LETTERS else 2
