"""Queries to Lance, by vector or by words: checked first, and repeated for more rows where hits were dropped.

Rows that a reader may not see yet (of videos or additions that are not complete) are dropped after the query, and so
are hits too near to a better one; where too few are left, the query is repeated for four times as many.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, isnan, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinodex.index.clocks import moved, stored_range
from kinodex.index.errors import QueryError, UnknownVideo
from kinodex.index.kinds import FoundIn
from kinodex.index.rows import Hit, Scope, VideoRow
from kinodex.index.search.finite_vectors import check_searched
from kinodex.index.search.held_rows import held_rows
from kinodex.index.store.database import Tables
from kinodex.index.store.filters import Filter, all_of, any_of, none_of, one_of
from kinodex.index.store.quiet_lance import BooleanQuery, FullTextQuery, MatchQuery, Occur, PhraseQuery
from kinodex.index.store.storage_errors import storage_errors
from kinodex.index.store.vector_index import COLUMN, PART_ROWS, count_parts
from kinodex.index.terms import TERMS, line_terms, query_terms
from kinodex.index.utf8 import checked_text
from kinodex.index.videos.visibility import VisibilityCache

FEW_VIDEOS = 20
"""Up to this many videos are searched exactly: quicker than the vector index, which then has to be filtered."""
FEW_LISTED, MOST_LISTED, LARGE_SHARE = 50, 5_000, 0.2
"""Ids of videos in a filter take 15 microseconds each: of more than a few, and of a large share of all, rows of others
are dropped after the search instead; of more than the most, always."""
SPARE = 2.0
"""Rows that are fetched then, for each that is needed on the average."""
REFINE_FACTOR = 5
"""The index compares rounded vectors; five times as many as requested are compared again, exactly."""
MIN_CANDIDATES = 600
"""Candidates that a walk through a graph of `PART_ROWS` keeps at least: in ten such graphs it finds 98 of the 100 best
frames, and with 200 some 90."""
MOST_TIED = 1000
"""Rows from which on no more are fetched to find the earliest of equal ones."""
SMALL_TABLE = 4096
"""Up to this many vectors are compared in memory, where all are searched."""
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
    """Fetch the `k` rows nearest by cosine, with `_distance` = 1 - cosine; raises DamagedRows for a NaN.

    The nearest come first, of equal ones by video and the second of the `columns`.
    """
    with storage_errors(tables.uri):
        table = tables[name]
        if not (held := table.count_rows()):  # a scan of nothing takes 2 ms
            return []
        if not count_parts(table):
            check_searched(tables, name, where)
            if where is None and held <= SMALL_TABLE and (small := held_rows(tables, name)):
                return _in_order(small.nearest(query, columns, k), columns)
        effort: dict[str, Any] = {"use_index": False}
        if not exact:
            effort = {"refine_factor": REFINE_FACTOR, "ef": candidates(k, held)}
        nearest = {"column": COLUMN, "q": query, "k": k, "metric": "cosine", **effort}
        chosen, condition = [*columns, "_distance"], None if where is None else where.sql
        rows: Rows = table.scanner(chosen, condition, nearest=nearest, prefilter=True).to_table().to_pylist()
    return _in_order(rows, columns)


def _in_order(rows: Rows, columns: Sequence[str]) -> Rows:
    return sorted(rows, key=lambda row: (row["_distance"], row["video_id"], row[columns[1]]))


def candidates(k: int, rows: int) -> int:
    """Compute how many candidates a walk keeps in each graph: fewer in smaller ones, by measurement."""
    share = min(1.0, max(rows, 1) / PART_ROWS)
    return max(ceil(max(MIN_CANDIDATES, 10 * k) * sqrt(share)), MIN_WALK, REFINE_FACTOR * k)


def matching_rows(tables: Tables, name: str, text: str, columns: Sequence[str], where: Filter | None, k: int) -> Rows:
    """Fetch the `k` rows whose terms match a text's best by BM25; words in "quotes" must be adjacent."""
    query = words_query(text)
    return best_rows(tables, name, query, columns, where, k) if query and tables.count(name) else []


def words_query(text: str) -> FullTextQuery | None:
    """Make a query for any of the terms of a text, and for every phrase in "quotes"; None for a text without terms."""
    parts = text.split('"')
    loose = parts[::2] if len(parts) % 2 else [*parts[::2], parts[-1]]  # a quote that is not closed is none
    phrases = [" ".join(line_terms(part)) for part in parts[1 : len(parts) - 1 : 2]]
    queries: list[tuple[Occur, FullTextQuery]] = [
        (Occur.MUST, PhraseQuery(phrase, TERMS) if " " in phrase else MatchQuery(phrase, TERMS))
        for phrase in phrases
        if phrase
    ]
    if terms := " ".join(term for part in loose for term in query_terms(part)):
        queries.append((Occur.SHOULD, MatchQuery(terms, TERMS)))
    return BooleanQuery(queries) if len(queries) > 1 else queries[0][1] if queries else None


def best_rows(
    tables: Tables, name: str, query: FullTextQuery, columns: Sequence[str], where: Filter | None, k: int
) -> Rows:
    """Fetch the `k` rows that match a query of Lance's best by BM25, best first; those of one score by their place."""
    found = tables.rows(name, where, [*columns, "_score"], full_text_query=query, prefilter=True, limit=k)
    return sorted(found.to_pylist(), key=lambda row: (-row["_score"], row["video_id"], row["start_s"]))


def hit_of(row: Mapping[str, Any], source: FoundIn, text: str | None) -> Hit:
    """Return the hit of a row that covers a range of time, found by its words, else by its vector."""
    bm25 = row.get("_score")
    cosine = 1.0 - row["_distance"] if "_distance" in row else None
    score: Any = cosine if bm25 is None else bm25
    said = row.get("speaker"), row.get("language")
    return Hit(row["video_id"], row["start_s"], row["end_s"], None, score, text, source, cosine, bm25, *said)


@dataclass(frozen=True, slots=True)
class Limits:
    """The rows of a search: those that `where` matches, or of `loose`, which matches other videos' too, some."""

    where: Filter | None
    are_few: bool = False
    """True if they are of so few videos that these are searched exactly."""
    loose: Filter | None = None
    share: float = 0.0
    """Of the videos that `loose` matches, those that are wanted; 0 where `where` is quicker."""


def search_until_k(
    fetch: Callable[[int, Filter | None], Rows],
    to_hits: Callable[[Rows], list[Hit]],
    k: int,
    first: int,
    limits: Limits,
) -> list[Hit]:
    """Collect `k` hits, or all there are, by asking for more rows; of rows that tie the earliest are taken.

    Where a condition holds for a large share of the videos, rows of all are asked for, as many more as that share has
    it: `to_hits` drops the others. Should the best be in others, too few are left, and those are filtered out first.
    """
    if limits.share:
        limit = ceil(SPARE * first / limits.share)
        rows = fetch(limit, limits.loose)
        sure = rows if len(rows) < limit else [row for row in rows if _score(row) != _score(rows[-1])]
        hits = to_hits(sure)
        if len(hits) >= k or len(rows) < limit:
            return hits[:k]
    limit = first
    while True:
        rows = fetch(limit + 1, limits.where)
        hits = to_hits(rows)
        is_all = len(rows) <= limit
        if is_all or (len(hits) >= k and (limit >= MOST_TIED or _score(rows[k - 1]) != _score(rows[-1]))):
            return hits[:k]
        limit *= 4


def _score(row: Mapping[str, Any]) -> Any:
    """Return the value by which rows are ordered."""
    return next(row[name] for name in ("_distance", "_score", "score") if name in row)


def limits_of(
    visible: VisibilityCache,
    scope: Scope,
    limit: Callable[[float | None, float | None], list[Filter]],
    further: Sequence[Filter] = (),
) -> Limits:
    """Match rows of the videos and times of a scope, whatever their clocks; `limit` is `within` or `overlapping`.

    A scope without videos is all that `visible` shows: those of a condition are filtered by id, in the way that is
    quickest for their number and share.
    """
    timed = [*further, *_in_time(visible, scope, limit)]
    some, share = (scope.video_ids, 0.0) if scope.video_ids is not None else visible.among()
    if some is None:
        return Limits(all_of(timed))
    loose = all_of(timed)
    if len(some) > MOST_LISTED:
        return Limits(loose, False, loose, share)
    where = all_of([one_of("video_id", sorted(some)), *timed])
    is_large = len(some) > FEW_LISTED and share >= LARGE_SHARE
    return Limits(where, len(some) <= FEW_VIDEOS, loose if is_large else None, share if is_large else 0.0)


def _in_time(
    visible: VisibilityCache, scope: Scope, limit: Callable[[float | None, float | None], list[Filter]]
) -> list[Filter]:
    limits = limit(scope.start_s, scope.end_s)
    if not limits:
        return []
    late_ids: dict[float, list[str]] = {}
    for video_id, zero_s in visible.late_zeros_s(scope.video_ids).items():
        late_ids.setdefault(zero_s, []).append(video_id)
    if not late_ids:
        return limits
    others = all_of([none_of("video_id", [id_ for ids in late_ids.values() for id_ in ids]), *limits])
    parts = [
        all_of([one_of("video_id", ids), *limit(*stored_range(zero_s, scope.start_s, scope.end_s))])
        for zero_s, ids in late_ids.items()
    ]
    return [any_of([each for each in (others, *parts) if each is not None])]


def on_player_clock(rows: Rows, videos: Mapping[str, VideoRow]) -> Rows:
    """Keep the rows of these videos, with times as a player shows them."""
    zeros_s = {video_id: video.zero_s for video_id, video in videos.items()}
    shown = ((row, zeros_s[row["video_id"]]) for row in rows if row["video_id"] in zeros_s)
    return [moved(row, -zero_s) if zero_s else row for row, zero_s in shown]


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
