"""Detections: things that a model sees in frames, with boxes and tracks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from index.rows import DetectionRow, VideoRow
from index.store.filters import all_of, at_least, equal, one_of, within
from index.store.tables import Tables


class DetectionLike(Protocol):
    """A detection as a model gives it; `box` is x0, y0, x1, y1, each 0 to 1."""

    @property
    def frame_no(self) -> int: ...
    @property
    def time_s(self) -> float: ...
    @property
    def label(self) -> str: ...
    @property
    def score(self) -> float: ...
    @property
    def box(self) -> Sequence[float]: ...
    @property
    def track_id(self) -> int | None: ...


def plain_label(label: str) -> str:
    """A label as it is stored and asked for: small letters, single spaces."""
    return " ".join(label.lower().split())


def add_detections(tables: Tables, videos: Mapping[str, Sequence[DetectionLike]], model: str) -> None:
    """See Library.add_detections."""
    tables.append(
        "detections",
        [
            {
                "video_id": video_id,
                "frame_no": found.frame_no,
                "time_s": found.time_s,
                "label": plain_label(found.label),
                "score": found.score,
                "box": list(found.box),
                "track_id": found.track_id,
                "model": model,
            }
            for video_id, detections in videos.items()
            for found in detections
        ],
    )


def detections(
    tables: Tables,
    video: VideoRow,
    models: Sequence[str],
    start_s: float | None,
    end_s: float | None,
    label: str | None,
    min_score: float,
) -> list[DetectionRow]:
    """See Library.detections; of these models only."""
    if not models:
        return []
    of_label = [] if label is None else [equal("label", plain_label(label))]
    of_video = [equal("video_id", video.video_id), one_of("model", models), at_least("score", min_score)]
    rows = tables.rows("detections", all_of(of_video + of_label + within(start_s, end_s)))
    rows = rows.sort_by([("time_s", "ascending"), ("score", "descending"), ("label", "ascending")])
    return [DetectionRow(**row | {"box": tuple(row["box"])}) for row in rows.to_pylist()]
