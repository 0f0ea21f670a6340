"""Searching frames by vector, transcript by words (BM25), and both together.

Rows of videos that are not complete are dropped after the fact, and so are hits too near to a better one; where
that leaves fewer than asked for, the search is run again for four times as many. A frame that two runs are just
writing at once counts once: `Library.complete` will take it out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.errors import QueryError, UnknownVideo
from index.filters import all_of, of_videos, overlapping, within
from index.rows import Hit, Scope, VideoRow
from index.storage import storage_errors
from index.tables import Tables

FEW_VIDEOS = 20
"""Up to this many videos are searched exactly: quicker than the vector index, which then has to be filtered."""
REFINE = 10
"""The index compares rounded vectors; ten times as many as asked for are compared again, exactly."""
RRF_K = 60
SAME_MOMENT_S = 3.0

Videos = Mapping[str, VideoRow]
Rows = list[dict[str, Any]]


def search_frames(
    tables: Tables,
    table: str,
    videos: Videos,
    vector: NDArray[Any],
    scope: Scope,
    k: int,
    min_gap_s: float,
) -> list[Hit]:
    """See Library.search_frames. Exact in up to 20 videos and where no vector index was built."""
    _check(videos, scope, k, min_gap_s)
    query = _unit_query(vector, tables[table].schema.field("vector").type.list_size)
    where = all_of(of_videos(scope) + within(scope.start_s, scope.end_s))
    few = scope.video_ids is not None and len(scope.video_ids) <= FEW_VIDEOS

    def fetch(limit: int) -> Rows:
        with storage_errors(tables.uri):
            search = tables[table].search(query, vector_column_name="vector").distance_type("cosine")
            search = search if where is None else search.where(where)
            search = search.bypass_vector_index() if few else search.refine_factor(REFINE)
            found = search.select(["video_id", "frame_no", "time_s", "_distance"]).limit(limit).to_arrow()
        rows: Rows = found.to_pylist()
        return sorted(rows, key=lambda row: (row["_distance"], row["video_id"], row["frame_no"]))

    def keep(rows: Rows) -> list[Hit]:
        complete = {(row["video_id"], row["frame_no"]): row for row in rows if row["video_id"] in videos}
        return spaced([_frame_hit(row, videos) for row in complete.values()], min_gap_s)

    return _widening(fetch, keep, k)


def search_transcript(tables: Tables, videos: Videos, text: str, scope: Scope, k: int) -> list[Hit]:
    """See Library.search_transcript. Any text is a fair query; what is no word matches nothing."""
    _check(videos, scope, k, 0.0)
    if not text.strip():
        raise QueryError("got an empty query; give some words to look for")
    where = all_of(of_videos(scope) + overlapping(scope.start_s, scope.end_s))

    def fetch(limit: int) -> Rows:
        with storage_errors(tables.uri):
            search = tables["transcript"].search(text, query_type="fts", fts_columns="text")
            search = search if where is None else search.where(where)
            rows: Rows = search.limit(limit).to_arrow().to_pylist()
        return sorted(rows, key=lambda row: (-row["_score"], row["video_id"], row["start_s"]))

    def keep(rows: Rows) -> list[Hit]:
        return [_line_hit(row) for row in rows if row["video_id"] in videos]

    return _widening(fetch, keep, k)


def search(
    tables: Tables,
    table: str,
    videos: Videos,
    text: str,
    vector: NDArray[Any],
    scope: Scope,
    k: int,
    min_gap_s: float,
) -> list[Hit]:
    """See Library.search: each search gives four times `k` hits, which are then fused."""
    frames = search_frames(tables, table, videos, vector, scope, 4 * k, min_gap_s)
    lines = search_transcript(tables, videos, text, scope, 4 * k)
    return spaced(fuse(frames, lines), min_gap_s)[:k]


def fuse(frames: Sequence[Hit], lines: Sequence[Hit]) -> list[Hit]:
    """Reciprocal rank fusion (Cormack, Clarke and Buettcher 2009): a hit's score is the sum of 1 / (60 + rank).

    A transcript line joins the best frame shown while it is said, or within 3 s of that, if no better line
    did; the joined hit keeps the frame's time and number and the line's text.
    """
    moments = [replace(hit, score=1 / (RRF_K + rank)) for rank, hit in enumerate(frames, start=1)]
    for rank, line in enumerate(lines, start=1):
        score = 1 / (RRF_K + rank)
        at = next((at for at, moment in enumerate(moments) if _same_moment(moment, line)), None)
        if at is None:
            moments.append(replace(line, score=score))
        else:
            frame = moments[at]
            end_s = max(frame.end_s, line.end_s)
            moments[at] = replace(frame, score=frame.score + score, end_s=end_s, text=line.text, source="both")
    return sorted(moments, key=lambda hit: (-hit.score, hit.video_id, hit.time_s))


def _same_moment(moment: Hit, line: Hit) -> bool:
    near = line.time_s - SAME_MOMENT_S <= moment.time_s < line.end_s + SAME_MOMENT_S
    return moment.source == "frame" and moment.video_id == line.video_id and near


def spaced(hits: Sequence[Hit], min_gap_s: float) -> list[Hit]:
    """The hits, best first, without those nearer than `min_gap_s` to a better one of the same video."""
    kept: list[Hit] = []
    taken_s: dict[str, list[float]] = {}
    for hit in hits:
        times = taken_s.setdefault(hit.video_id, [])
        if all(abs(hit.time_s - time_s) >= min_gap_s for time_s in times):
            kept.append(hit)
            times.append(hit.time_s)
    return kept


def _widening(fetch: Callable[[int], Rows], keep: Callable[[Rows], list[Hit]], k: int) -> list[Hit]:
    limit = 4 * k
    while True:
        rows = fetch(limit)
        kept = keep(rows)
        if len(kept) >= k or len(rows) < limit:
            return kept[:k]
        limit *= 4


def _frame_hit(row: Mapping[str, Any], videos: Videos) -> Hit:
    video = videos[row["video_id"]]
    end_s = max(min(row["time_s"] + 1 / video.sample_fps, video.end_s), row["time_s"])
    score = 1.0 - row["_distance"]
    return Hit(row["video_id"], row["time_s"], end_s, row["frame_no"], score, None, "frame")


def _line_hit(row: Mapping[str, Any]) -> Hit:
    return Hit(row["video_id"], row["start_s"], row["end_s"], None, row["_score"], row["text"], "transcript")


def _unit_query(vector: NDArray[Any], dim: int) -> NDArray[np.float32]:
    query = np.asarray(vector, np.float32)
    if query.shape != (dim,):
        raise QueryError(f"got a query vector of shape {query.shape}; this library's space has {dim} dimensions")
    if not np.isfinite(query).all() or not query.any():
        raise QueryError("got a query vector of zeros or of numbers that are not finite; embed the query again")
    return query


def _check(videos: Videos, scope: Scope, k: int, min_gap_s: float) -> None:
    if k < 1:
        raise QueryError(f"got k={k}; ask for at least 1 hit")
    if not min_gap_s >= 0:
        raise QueryError(f"got a minimum gap of {min_gap_s} s; give 0 or more")
    if scope.start_s is not None and scope.end_s is not None and not scope.start_s < scope.end_s:
        raise QueryError(f"got times from {scope.start_s} to {scope.end_s} s; the end must be after the start")
    if scope.video_ids == ():
        raise QueryError("got no video to search in; name some, or none at all to search every video")
    for video_id in scope.video_ids or ():
        if video_id not in videos:
            raise UnknownVideo(f"got video {video_id!r}, which this library does not hold; `kinodex info` lists all")
