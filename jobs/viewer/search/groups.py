"""Moments by video, best first, as the page shows them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.library import Library
from index.rows import Hit, VideoRow
from jobs.viewer.search.moments import Moment
from jobs.viewer.search.reasons import By, why

FrameTimes = Callable[[VideoRow], tuple[NDArray[np.int32], NDArray[np.float64]]]
MOST_OF_A_VIDEO = 12
"""Hits of one video among those of several: the rest are found by a search of that video."""


def groups_view(
    library: Library, moments: Sequence[Moment], text: str, by: By, frame_times: FrameTimes, one_video: bool = False
) -> dict[str, Any]:
    """Group moments by video, in the order of each video's best: `{"count", "groups": [{..., "hits": [...]}]}`.

    A hit's `score` is that of its search, which says nothing beside another's (see `Hit`). `similarity` is the cosine
    of its frame, if its picture was found. `strength` is 0 to 1: how near its best part (picture, words, detection)
    comes to the best of the same kind among these hits.
    """
    bests = best_scores(moments)
    by_video: dict[str, list[Moment]] = {}
    for moment in moments:
        by_video.setdefault(moment.hit.video_id, []).append(moment)
    rows = library.visible.videos(by_video.keys())
    most = len(moments) if one_video or len(by_video) == 1 else MOST_OF_A_VIDEO
    groups: list[dict[str, Any]] = [
        {
            "video_id": video_id,
            "title": rows[video_id].title,
            "duration_s": rows[video_id].duration_s,
            "more": max(0, len(found) - most),
            "hits": [
                _hit_view(moment, rows[video_id], frame_times)
                | {
                    "strength": strength(moment, bests),
                    "why": why(moment, text, by, _share(moment.frame, bests)),
                }
                for moment in found[:most]
            ],
        }
        for video_id, found in by_video.items()
        if video_id in rows
    ]
    return {"count": sum(len(group["hits"]) for group in groups), "groups": groups}


def best_scores(moments: Sequence[Moment]) -> dict[str, float]:
    """Find the best score of each kind of hit among moments."""
    bests: dict[str, float] = {}
    for moment in moments:
        for part in _parts(moment):
            bests[part.source] = max(bests.get(part.source, 0.0), part.score)
    return bests


def strength(moment: Moment, bests: dict[str, float]) -> float:
    """Compute the best ratio, 0 to 1, of a moment's parts to the best of their kinds."""
    return round(min(1.0, max([0.0, *(_share(part, bests) for part in _parts(moment))])), 3)


def _share(part: Hit | None, bests: dict[str, float]) -> float:
    return part.score / bests[part.source] if part is not None and bests.get(part.source, 0.0) > 0 else 0.0


def _parts(moment: Moment) -> list[Hit]:
    found = (moment.frame, moment.line, moment.shown, moment.caption, moment.detection)
    return [part for part in found if part is not None]


def _hit_view(moment: Moment, video: VideoRow, frame_times: FrameTimes) -> dict[str, Any]:
    hit = moment.hit
    return {
        "start_s": hit.time_s,
        "end_s": hit.end_s,
        "frame_no": hit.frame_no if hit.frame_no is not None else _shown_frame(hit, video, frame_times),
        "score": hit.score,
        "similarity": None if moment.frame is None else round(moment.frame.score, 4),
        "source": hit.source,
        "text": hit.text,
    }


def _shown_frame(hit: Hit, video: VideoRow, frame_times: FrameTimes) -> int | None:
    """Number of the frame nearest to the middle of a hit; None where the video has no frames."""
    numbers, times_s = frame_times(video)
    if not len(numbers):
        return None
    return int(numbers[np.argmin(np.abs(times_s - (hit.time_s + hit.end_s) / 2))])
