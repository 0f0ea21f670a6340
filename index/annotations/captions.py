"""Captions of segments: written by a model, read with the segments, searched by word and by meaning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from index.rows import CaptionRow, FrameVectors, VideoRow
from index.store.filters import equal, one_of
from index.store.tables import Tables

COLUMNS = ["video_id", "segment_no", "start_s", "end_s", "text", "confidence", "model"]


class CaptionLike(Protocol):
    """A caption as a model gives it; `vector` is its text as a unit vector `[dim]` in the library's own space."""

    @property
    def segment_no(self) -> int: ...
    @property
    def start_s(self) -> float: ...
    @property
    def end_s(self) -> float: ...
    @property
    def text(self) -> str: ...
    @property
    def confidence(self) -> float | None: ...
    @property
    def vector(self) -> NDArray[Any] | None: ...


def add_captions(tables: Tables, videos: Mapping[str, Sequence[CaptionLike]], model: str) -> None:
    """See Library.add_captions; raises ValueError for vectors of another dimension than the space's."""
    dim = tables["captions"].schema.field("vector").type.list_size
    rows = [_row(video_id, caption, model, dim) for video_id, captions in videos.items() for caption in captions]
    tables.append("captions", rows)


def _row(video_id: str, caption: CaptionLike, model: str, dim: int) -> dict[str, Any]:
    vector = None if caption.vector is None else np.asarray(caption.vector, np.float16)
    if vector is not None and vector.shape != (dim,):
        raise ValueError(f"a caption's vector has shape {vector.shape}, the library's space has {dim} dimensions")
    return {
        "video_id": video_id,
        "segment_no": caption.segment_no,
        "start_s": caption.start_s,
        "end_s": caption.end_s,
        "text": caption.text,
        "confidence": caption.confidence,
        "model": model,
        "vector": vector,
    }


def captions(tables: Tables, video: VideoRow, model: str) -> list[CaptionRow]:
    """The captions of a video by one model, in order."""
    of_model = equal("video_id", video.video_id) & equal("model", model)
    rows = tables.rows("captions", of_model, COLUMNS).sort_by("segment_no")
    return [CaptionRow(**row) for row in rows.to_pylist()]


def caption_vectors(tables: Tables, video: VideoRow, models: Sequence[str]) -> FrameVectors:
    """See Library.caption_vectors; of the last of `models`."""
    dim = tables["captions"].schema.field("vector").type.list_size
    of_model = equal("video_id", video.video_id) & one_of("model", models[-1:])
    rows = tables.rows("captions", of_model, ["segment_no", "start_s", "vector"]).sort_by("segment_no")
    rows = rows.filter(rows["vector"].is_valid())
    numbers = rows["vector"].combine_chunks().flatten().to_numpy().reshape(rows.num_rows, dim)
    return FrameVectors(rows["segment_no"].to_numpy(), rows["start_s"].to_numpy(), numbers)
