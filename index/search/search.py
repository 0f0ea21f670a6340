"""Searching frames by vector, transcript and captions by words (BM25), captions also by vector, detections by label.

Where several models wrote captions or heard speech in a video, the newest is searched; detections of all models are.
A frame that two runs are just writing at once counts once: `Library.complete` will take it out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from lancedb.query import ColumnOrdering
from numpy.typing import NDArray

from index.annotations.detections import plain_label
from index.rows import Hit, Scope, VideoRow
from index.search.fusion import fuse_same, spaced
from index.search.query import (
    Rows,
    check_scope,
    check_words,
    is_few,
    matching_rows,
    nearest_rows,
    search_until_k,
    unit_query,
)
from index.search.space_scope import Seen
from index.search.visibility import VisibilityCache
from index.store.connection import storage_errors
from index.store.filters import all_of, at_least, equal, of_videos, overlapping, within
from index.store.tables import Tables

LINE_COLUMNS = ["video_id", "start_s", "end_s", "text", "model"]
CAPTION_COLUMNS = ["video_id", "segment_no", "start_s", "end_s", "text", "model"]
DETECTION_COLUMNS = ["video_id", "frame_no", "time_s", "label", "score", "model"]


def search_frames(
    tables: Tables, seen: Seen, vector: NDArray[Any], scope: Scope, k: int, min_gap_s: float
) -> list[Hit]:
    """See Library.search_frames. Exact in up to 20 videos and where no vector index was built."""
    check_scope(seen.catalogue, scope, k, min_gap_s)
    seen.check(scope.video_ids or ())
    query = unit_query(vector, tables[seen.table].schema.field("vector").type.list_size)
    where = all_of(of_videos(scope) + within(scope.start_s, scope.end_s))

    def fetch(limit: int) -> Rows:
        rows = nearest_rows(tables, seen.table, query, ["video_id", "frame_no", "time_s"], where, is_few(scope), limit)
        return sorted(rows, key=lambda row: (row["_distance"], row["video_id"], row["frame_no"]))

    def keep(rows: Rows) -> list[Hit]:
        videos = seen.videos({row["video_id"] for row in rows})
        complete = {(row["video_id"], row["frame_no"]): row for row in rows if row["video_id"] in videos}
        return spaced([_frame_hit(row, videos) for row in complete.values()], min_gap_s)

    return search_until_k(fetch, keep, k, first=4 * k if min_gap_s else k)


def search_transcript(tables: Tables, catalogue: VisibilityCache, text: str, scope: Scope, k: int) -> list[Hit]:
    """See Library.search_transcript. Any text is a fair query; what is no word matches nothing."""
    check_scope(catalogue, scope, k)
    check_words(text)
    where = all_of(of_videos(scope) + overlapping(scope.start_s, scope.end_s))

    def by_words(limit: int) -> Rows:
        return _best_first(matching_rows(tables, "transcript", text, LINE_COLUMNS, where, limit))

    def keep(rows: Rows) -> list[Hit]:
        return [_text_hit(row, "transcript") for row in _visible(rows, catalogue, "speech")]

    return search_until_k(by_words, keep, k, first=k)


def _best_first(rows: Rows) -> Rows:
    """By score, those of the same one in order of place."""
    return sorted(rows, key=lambda row: (-row["_score"], row["video_id"], row["start_s"]))


def search_captions(
    tables: Tables,
    catalogue: VisibilityCache,
    text: str,
    vector: NDArray[Any] | None,
    scope: Scope,
    k: int,
) -> list[Hit]:
    """See Library.search_captions: each of the two searches gives twice `k` captions, which are then fused."""
    check_scope(catalogue, scope, k)
    check_words(text)
    where = all_of(of_videos(scope) + overlapping(scope.start_s, scope.end_s))

    def by_words(limit: int) -> Rows:
        return _best_first(matching_rows(tables, "captions", text, CAPTION_COLUMNS, where, limit))

    def keep(rows: Rows) -> list[Hit]:
        return [_text_hit(row, "caption") for row in _visible(rows, catalogue, "captions")]

    if vector is None:
        return search_until_k(by_words, keep, k, first=k)
    query = unit_query(vector, tables["captions"].schema.field("vector").type.list_size)

    def by_meaning(limit: int) -> Rows:
        rows = nearest_rows(tables, "captions", query, CAPTION_COLUMNS, where, is_few(scope), limit)
        return sorted(rows, key=lambda row: (row["_distance"], row["video_id"], row["start_s"]))

    return fuse_same(*(search_until_k(by, keep, 2 * k, first=2 * k) for by in (by_words, by_meaning)))[:k]


def search_detections(
    tables: Tables,
    catalogue: VisibilityCache,
    label: str,
    min_score: float,
    scope: Scope,
    k: int,
    min_gap_s: float,
) -> list[Hit]:
    """See Library.search_detections."""
    check_scope(catalogue, scope, k, min_gap_s)
    check_words(label)
    of_label = [equal("label", plain_label(label)), at_least("score", min_score)]
    where = all_of(of_label + of_videos(scope) + within(scope.start_s, scope.end_s))
    best_first = [
        ColumnOrdering(column_name="score", ascending=False),
        ColumnOrdering(column_name="video_id"),
        ColumnOrdering(column_name="time_s"),
    ]

    def fetch(limit: int) -> Rows:
        with storage_errors(tables.uri):
            search = tables["detections"].search().where(where).order_by(best_first)
            rows: Rows = search.select(DETECTION_COLUMNS).limit(limit).to_arrow().to_pylist()
        return rows

    def keep(rows: Rows) -> list[Hit]:
        shown = _visible(rows, catalogue, "detections")
        videos = catalogue.videos({row["video_id"] for row in shown})
        best: dict[tuple[str, int], dict[str, Any]] = {}
        for row in shown:
            best.setdefault((row["video_id"], row["frame_no"]), row)
        return spaced([_detection_hit(row, videos) for row in best.values()], min_gap_s)

    return search_until_k(fetch, keep, k, first=4 * k)


def _visible(rows: Rows, catalogue: VisibilityCache, stage: str) -> Rows:
    """Rows of complete videos that no model wrote, or one that completed its stage there: the newest such model.

    Detections are of all such models: what one looks for another may not.
    """
    ids = {row["video_id"] for row in rows}
    videos, models = catalogue.videos(ids), catalogue.models(stage, ids)
    shown = {id_: names if stage == "detections" else names[-1:] for id_, names in models.items()}
    return [
        row for row in rows if row["video_id"] in videos and row["model"] in (None, *shown.get(row["video_id"], ()))
    ]


def _frame_hit(row: Mapping[str, Any], videos: Mapping[str, VideoRow]) -> Hit:
    score = 1.0 - row["_distance"]
    return Hit(row["video_id"], row["time_s"], _shown_until(row, videos), row["frame_no"], score, None, "frame")


def _detection_hit(row: Mapping[str, Any], videos: Mapping[str, VideoRow]) -> Hit:
    end_s = _shown_until(row, videos)
    return Hit(row["video_id"], row["time_s"], end_s, row["frame_no"], row["score"], row["label"], "detection")


def _shown_until(row: Mapping[str, Any], videos: Mapping[str, VideoRow]) -> float:
    video = videos[row["video_id"]]
    time_s: float = row["time_s"]
    return max(min(time_s + 1 / video.sample_fps, video.end_s), time_s)


def _text_hit(row: Mapping[str, Any], source: Literal["transcript", "caption"]) -> Hit:
    score = row.get("_score", 0.0)
    return Hit(row["video_id"], row["start_s"], row["end_s"], None, score, row["text"], source)
