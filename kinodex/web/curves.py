"""Curves and shots of the videos behind a trace: how well each query matches every frame, and where shots begin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kinodex.agent.videos.environment import Environment
from kinodex.agent.videos.scale import calibrate
from kinodex.index.library import Library
from kinodex.web.trace_view import TraceView

MOST_POINTS = 1500
"""More frames than this are grouped, each group shown by its best match: a screen has no more columns."""
MOST_SPANS = 3000


@dataclass(frozen=True, slots=True)
class Curve:
    query: str
    video_id: str
    times_s: list[float]
    percent: list[int]


def shots(library: Library, video_ids: Sequence[str]) -> dict[str, list[tuple[float, float]]]:
    """Segments of each video as `[start_s, end_s)`; a video with too many to draw is left out."""
    spans_s = {each: [(row.start_s, row.end_s) for row in library.segments(each)] for each in video_ids}
    return {video_id: shots_s for video_id, shots_s in spans_s.items() if len(shots_s) <= MOST_SPANS}


def curves(view: TraceView, environment: Environment) -> list[Curve]:
    """Draw a curve for each query and video of a trace, on the scale that the agent saw (`Environment.search`)."""
    among = [video.video_id for video in environment.videos]
    drawn: list[Curve] = []
    for step in view.steps:
        for video_id in among if step.queries else ():
            times_s = environment.times(video_id)
            matched = calibrate(environment.deviations(step.queries, video_id, among))
            for query, similarity in zip(step.queries, matched.T, strict=True):
                drawn.append(_curve(query, video_id, times_s, similarity))
    return drawn


def _curve(query: str, video_id: str, times_s: NDArray[np.float64], similarity: NDArray[np.float64]) -> Curve:
    width = -(-len(times_s) // MOST_POINTS)
    firsts = np.arange(0, len(times_s), max(width, 1))
    best = np.maximum.reduceat(similarity, firsts)
    return Curve(query, video_id, times_s[firsts].round(2).tolist(), (100 * best).round().astype(int).tolist())
