"""Captions of the segments of one video, and their vectors, as a model wrote them."""

from __future__ import annotations

from collections.abc import Sequence

from index.clock import moved, moved_s
from index.rows import CaptionRow, FrameVectors, VideoRow
from index.store.database import Tables
from index.store.filters import equal, one_of
from index.videos.stored_frames import check_vectors

TABLE = "captions"
COLUMNS = [*CaptionRow.__slots__]


def read_captions(tables: Tables, video: VideoRow, model: str) -> list[CaptionRow]:
    """Read the captions by a model, in order."""
    of_model = equal("video_id", video.video_id) & equal("model", model)
    rows = tables.rows(TABLE, of_model, COLUMNS).sort_by("segment_no")
    return [CaptionRow(**moved(row, -video.zero_s)) for row in rows.to_pylist()]


def caption_vectors(tables: Tables, video: VideoRow, models: Sequence[str]) -> FrameVectors:
    """Read the vectors of the captions by these models; `frame_no` is a caption's `segment_no`, `time_s` its start.

    Captions without a vector are left out. Raises DamagedRows.
    """
    dim = tables[TABLE].schema.field("vector").type.list_size
    of_models = equal("video_id", video.video_id) & one_of("model", models)
    rows = tables.rows(TABLE, of_models, ["video_id", "segment_no", "start_s", "vector"]).sort_by("segment_no")
    rows = rows.filter(rows["vector"].is_valid())
    check_vectors(rows, tables.uri)
    vectors = rows["vector"].combine_chunks().flatten().to_numpy().reshape(rows.num_rows, dim)
    starts_s = moved_s(rows["start_s"].to_numpy(), -video.zero_s)
    return FrameVectors(rows["segment_no"].to_numpy(), starts_s, vectors)
