"""One video as the page draws it: times of its frames, shots, what is said, shown, described, and detected where.

Hours of film are thousands of rows, so only what a time line draws is sent, and boxes come frame by frame.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinodex.index.kinds import KINDS, LINE_KINDS
from kinodex.index.library import Library
from kinodex.index.rows import DetectionRow, SegmentRow

EXACT_S = 1e-6


def video_view(library: Library, video_id: str) -> dict[str, Any]:
    """Return one video in columns and short rows; `detected` are frame numbers by label. Raises UnknownVideo.

    Times are rounded to a millisecond: a frame is asked for by its number. `opens_at_s` is the time of the frame to
    show first, None without frames.
    """
    row = library.video(video_id)
    numbers, times_s = library.frame_times(row.video_id)
    segments, lines = library.segments(row.video_id), library.lines.rows(row.video_id)
    return {
        "video": row,
        "frame_nos": numbers.tolist(),
        "times_s": times_s.round(3).tolist(),
        "opens_at_s": opening_s(times_s, segments),
        "segments": _columns(segments, "kind"),
        "contents": _columns(library.chapters.rows(row.video_id), "level", "title", "text"),
        "lines": [
            {
                "kind": kind,
                "label": KINDS[kind].label,
                "rows": _columns((line for line in lines if line.source == kind), "text", "speaker"),
            }
            for kind in LINE_KINDS
        ],
        "languages": sorted({line.language for line in lines if line.source == "speech" and line.language}),
        "detected": {label: frames.tolist() for label, frames in library.detected_frames(row.video_id).items()},
    }


def _columns(rows: Iterable[Any], *names: str) -> list[dict[str, Any]]:
    return [{name: getattr(row, name) for name in ("start_s", "end_s", *names)} for row in rows]


def frame_detections(library: Library, video_id: str, frame_no: int) -> list[DetectionRow]:
    time_s = library.frames(video_id, [frame_no])[0].time_s
    return [
        each for each in library.detections(video_id, time_s - EXACT_S, time_s + EXACT_S) if each.frame_no == frame_no
    ]


def opening_s(times_s: NDArray[np.float64], segments: list[SegmentRow]) -> float | None:
    """Return the time of the frame in the middle of the longest shot: many films begin with a black picture."""
    if not len(times_s):
        return None
    longest = max(segments, key=lambda each: each.end_s - each.start_s, default=None)
    middle_s = (times_s[0] + times_s[-1]) / 2 if longest is None else (longest.start_s + longest.end_s) / 2
    return float(times_s[np.argmin(np.abs(times_s - middle_s))].round(3))
