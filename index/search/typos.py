"""Search for words that forgives typos: in the query, and in what a model read off a picture.

Lance compares terms by edit distance (Levenshtein) only where it is given as a number, and only in rows that the
index of words knows; `refresh` sees to that at the end of each run.
"""

from __future__ import annotations

from kinodex.index.search.queries import Rows, best_rows
from kinodex.index.store.database import Tables
from kinodex.index.store.filters import Filter
from kinodex.index.store.quiet_lance import BooleanQuery, MatchQuery, Occur
from kinodex.index.terms import TERMS, query_terms

LEAST_LETTERS, MANY_LETTERS = 4, 8
MOST_LETTERS = 100
"""Lance cannot compare longer terms by distance: from some 200 letters on it fails."""


def forgiving_rows(tables: Tables, name: str, text: str, columns: list[str], where: Filter | None, k: int) -> Rows:
    """Fetch the `k` best rows, by BM25, that hold every longer word of a text, each with a typo or two."""
    query = forgiving_query(text)
    return [] if query is None else best_rows(tables, name, query, columns, where, k)


def forgiving_query(text: str) -> BooleanQuery | None:
    """Make a query for every word of at least four letters, with typos where the script has upper and lower case."""
    words = dict.fromkeys(query_terms(text))
    distances = {word: _distance(word) for word in words}
    if '"' in text or not any(distances.values()):
        return None
    return BooleanQuery(
        [
            (Occur.MUST if len(word) >= LEAST_LETTERS else Occur.SHOULD, MatchQuery(word, TERMS, fuzziness=distance))
            for word, distance in distances.items()
        ]
    )


def _distance(word: str) -> int:
    """Letters that may be wrong: 1 of four to seven, 2 of more; none in a number, where one changes what is meant."""
    if not LEAST_LETTERS <= len(word) <= MOST_LETTERS or word.lower() == word.upper():
        return 0
    return 1 if len(word) < MANY_LETTERS else 2
