"""Detections in the frames of one video, by all models that completed the stage of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from index.annotations.additions import plain_label
from index.clock import moved, stored_range
from index.rows import DetectionRow, VideoRow
from index.store.database import Tables
from index.store.filters import Filter, all_of, at_least, equal, one_of, within

TABLE = "detections"


def read_detections(
    tables: Tables,
    video: VideoRow,
    models: Sequence[str],
    start_s: float | None,
    end_s: float | None,
    label: str | None,
    min_score: float,
) -> list[DetectionRow]:
    """Read the detections at times in `[start_s, end_s)`, in order of time, then the surest first."""
    if not models:
        return []
    of_label = [] if label is None else [equal("label", plain_label(label))]
    limits = within(*stored_range(video.zero_s, start_s, end_s))
    where = [_of_video(video, models), at_least("score", min_score), *of_label, *limits]
    rows = tables.rows(TABLE, all_of(where))
    rows = rows.sort_by([("time_s", "ascending"), ("score", "descending"), ("label", "ascending")])
    return [DetectionRow(**moved(row, -video.zero_s) | {"box": tuple(row["box"])}) for row in rows.to_pylist()]


def detection_labels(tables: Tables, video: VideoRow, models: Sequence[str]) -> list[str]:
    """List the labels, those found most often first; without reading the detections."""
    if not models:
        return []
    counts = tables.rows(TABLE, _of_video(video, models), ["label"])["label"].value_counts().to_pylist()
    return [each["values"] for each in sorted(counts, key=lambda each: (-each["counts"], each["values"]))]


def detected_frames(tables: Tables, video: VideoRow, models: Sequence[str]) -> dict[str, NDArray[np.int32]]:
    """Read the numbers of the frames that each label was detected in, without boxes; most often found first."""
    if not models:
        return {}
    rows = tables.rows(TABLE, _of_video(video, models), ["label", "frame_no"])
    labels, inverse = np.unique(np.array(rows["label"].to_pylist(), object), return_inverse=True)
    numbers = rows["frame_no"].to_numpy()
    frames = {str(label): np.unique(numbers[inverse == at]) for at, label in enumerate(labels)}
    return dict(sorted(frames.items(), key=lambda each: (-len(each[1]), each[0])))


def _of_video(video: VideoRow, models: Sequence[str]) -> Filter:
    return equal("video_id", video.video_id) & one_of("model", models)
