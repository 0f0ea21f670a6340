"""Queries to Lance, by vector or by words: checked first, and repeated for more rows where hits were dropped.

Rows that a reader may not see yet (of videos or additions that are not complete) are dropped after the query, and so
are hits too near to a better one; where too few are left, the query is repeated for four times as many.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from math import ceil, isnan, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.clock import moved, stored_range
from index.errors import QueryError, UnknownVideo
from index.rows import Hit, Scope, VideoRow
from index.search.finite_vectors import check_searched
from index.store.database import Tables, storage_errors
from index.store.filters import Filter, all_of, any_of, none_of, of_videos, one_of
from index.store.vector_index import COLUMN, PART_ROWS, count_parts
from index.utf8 import checked_text
from index.videos.visibility import VisibilityCache

FEW_VIDEOS = 20
"""Up to this many videos are searched exactly: quicker than the vector index, which then has to be filtered."""
REFINE_FACTOR = 5
"""The index compares rounded vectors; five times as many as requested are compared again, exactly."""
MIN_CANDIDATES = 600
"""Candidates that a walk through a graph of `PART_ROWS` keeps at least: in ten such graphs it finds 98 of the 100 best
frames, and with 200 some 90."""
MOST_TIED = 1000
"""Rows from which on no more are fetched to find the earliest of equal ones."""
MIN_WALK = 100
"""However small a graph is: of 30,000 frames 50 candidates miss some of the best."""

Rows = list[dict[str, Any]]


def nearest_rows(
    tables: Tables,
    name: str,
    query: NDArray[np.float32],
    columns: Sequence[str],
    where: Filter | None,
    exact: bool,
    k: int,
) -> Rows:
    """Fetch the `k` rows whose `vector` is nearest by cosine, exactly if `exact`; with `_distance` = 1 - cosine.

    Raises DamagedRows where a row that would be searched has a vector with NaN, in a table without an index.
    """
    with storage_errors(tables.uri):
        table = tables[name]
        if not count_parts(table):
            check_searched(tables, name, where)
        effort: dict[str, Any] = {"use_index": False}
        if not exact:
            effort = {"refine_factor": REFINE_FACTOR, "ef": candidates(k, table.count_rows())}
        nearest = {"column": COLUMN, "q": query, "k": k, "metric": "cosine", **effort}
        chosen, condition = [*columns, "_distance"], None if where is None else where.sql
        rows: Rows = table.scanner(chosen, condition, nearest=nearest, prefilter=True).to_table().to_pylist()
    return rows


def candidates(k: int, rows: int) -> int:
    """Compute how many candidates a walk keeps in each graph of the index, for the best `k` of a table of so many rows.

    A smaller graph needs fewer; the square root was chosen by measurement.
    """
    share = min(1.0, max(rows, 1) / PART_ROWS)
    return max(ceil(max(MIN_CANDIDATES, 10 * k) * sqrt(share)), MIN_WALK, REFINE_FACTOR * k)


def matching_rows(tables: Tables, name: str, text: str, columns: Sequence[str], where: Filter | None, k: int) -> Rows:
    """Fetch the `k` rows whose `text` matches best by BM25, with `_score`; words in "quotes" must be adjacent.

    Accents do not count, whether a text has them in its letters or as marks of their own.
    """
    words = {"query": both_forms(text), "columns": ["text"]}
    found = tables.rows(name, where, [*columns, "_score"], full_text_query=words, prefilter=True, limit=k)
    rows: Rows = found.to_pylist()
    return rows


def both_forms(text: str) -> str:
    """Add the words of a text with their accents as marks of their own, which the index takes for other words.

    Words in "quotes" stay as they are written: a second form would have to follow the first.
    """
    composed, marked = (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))
    if composed == marked or '"' in text:
        return composed
    return " ".join([composed, *(word for word in marked.split() if unicodedata.normalize("NFC", word) != word)])


def search_until_k(fetch: Callable[[int], Rows], to_hits: Callable[[Rows], list[Hit]], k: int, first: int) -> list[Hit]:
    """Collect `k` hits, or all there are: `fetch(limit)` returns the best rows, `to_hits` the hits among them.

    Of rows that tie with the last hit a table gives any: more are fetched, so that the earliest are taken.
    """
    limit = first
    while True:
        rows = fetch(limit + 1)
        hits = to_hits(rows)
        is_all = len(rows) <= limit
        if is_all or (len(hits) >= k and (limit >= MOST_TIED or _score(rows[k - 1]) != _score(rows[-1]))):
            return hits[:k]
        limit *= 4


def _score(row: Mapping[str, Any]) -> Any:
    """The value by which rows are ordered."""
    return next(row[name] for name in ("_distance", "_score", "score") if name in row)


def in_scope(
    visible: VisibilityCache, scope: Scope, limit: Callable[[float | None, float | None], list[Filter]]
) -> list[Filter]:
    """Match rows of the videos and times of a scope; `limit` is `within` or `overlapping`.

    The scope's times are those that a player shows, and the stored ones of some videos count from elsewhere.
    """
    chosen = of_videos(scope)
    limits = limit(scope.start_s, scope.end_s)
    if not limits:
        return chosen
    late_ids: dict[float, list[str]] = {}
    for video_id, zero_s in visible.late_zeros_s(scope.video_ids).items():
        late_ids.setdefault(zero_s, []).append(video_id)
    if not late_ids:
        return [*chosen, *limits]
    others = all_of([none_of("video_id", [id_ for ids in late_ids.values() for id_ in ids]), *limits])
    parts = [all_of([one_of("video_id", ids), *limit(*_stored(zero_s, scope))]) for zero_s, ids in late_ids.items()]
    return [*chosen, any_of([each for each in (others, *parts) if each is not None])]


def _stored(zero_s: float, scope: Scope) -> tuple[float | None, float | None]:
    return stored_range(zero_s, scope.start_s, scope.end_s)


def on_player_clock(rows: Rows, videos: Mapping[str, VideoRow]) -> Rows:
    """Keep the rows of these videos, with times as a player shows them."""
    return [moved(row, -videos[row["video_id"]].zero_s) for row in rows if row["video_id"] in videos]


def is_few(scope: Scope) -> bool:
    """True if a search is limited to so few videos that it is exact."""
    return scope.video_ids is not None and len(scope.video_ids) <= FEW_VIDEOS


def check_words(text: str) -> None:
    """Raise QueryError for a query without words, or one that is not UTF-8."""
    if not checked_text(text).strip():
        raise QueryError("got an empty query; give some words to look for")


def check_scope(visible: VisibilityCache, scope: Scope, k: int, min_gap_s: float = 0.0) -> None:
    """Raise QueryError or UnknownVideo for a search that cannot be run."""
    if k < 1:
        raise QueryError(f"got k={k}; ask for at least 1 hit")
    for time_s in (scope.start_s, scope.end_s):
        if time_s is not None and isnan(time_s):
            raise QueryError("got a time that is not a number; leave it out to search from the start or to the end")
    if not min_gap_s >= 0:
        raise QueryError(f"got a minimum gap of {min_gap_s} s; give 0 or more")
    if scope.start_s is not None and scope.end_s is not None and not scope.start_s < scope.end_s:
        raise QueryError(f"got times from {scope.start_s} to {scope.end_s} s; the end must be after the start")
    if scope.video_ids == ():
        raise QueryError("got no video to search in; name some, or none at all to search every video")
    known = visible.videos(scope.video_ids or ())
    for video_id in scope.video_ids or ():
        if video_id not in known:
            raise UnknownVideo(f"got video {video_id!r}, which this library does not hold; `kinodex info` lists all")
