"""From what was found to what is watched: one rule for exports, groundings, and the player of the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from kinodex.index.rows import SegmentRow, VideoRow
from kinodex.jobs.export.moments import SHOT, Moment, by_video, in_time_order

PAD_S = 2.0
"""Seconds before and after a hit or evidence, which may be one frame or one word: somebody has to see what it is."""
SNAP_S = 1.5
"""A cut that lies so little outside a moment is its end."""
INSIDE_S = 1e-6


@dataclass(frozen=True, slots=True)
class MomentRule:
    """Rule by which moments become ranges to watch: padded within their video, ended at cuts, and joined.

    `snap`: the padding ends at the first cut on its way, and an end that lies less than `SNAP_S` inside its shot moves
    to the cut. `join_s`: moments of one video at most this many seconds apart become one; below 0, or None, none do.
    """

    pad_s: float = 0.0
    join_s: float | None = None
    snap: bool = False


AS_FOUND, PLAYED = MomentRule(), MomentRule(PAD_S, 0.0)
SegmentsOf = Callable[[str], Sequence[SegmentRow]]


def arranged(moments: Sequence[Moment], rule: MomentRule, segments_of: SegmentsOf) -> list[Moment]:
    """Arrange moments by a rule, in their order; one that others are joined to keeps the place of their first."""
    cuts_s = lru_cache(maxsize=None)(lambda video_id: cut_times(segments_of(video_id)))
    widened = []
    for each in moments:
        cuts = cuts_s(each.video.video_id) if rule.snap else ()
        start_s, end_s = watched(each.video, each.start_s, each.end_s, rule.pad_s, cuts)
        widened.append(replace(each, start_s=start_s, end_s=end_s))
    return widened if rule.join_s is None or rule.join_s < 0 else _joined(widened, rule.join_s)


def watched(
    video: VideoRow, start_s: float, end_s: float, pad_s: float = PAD_S, cuts_s: Sequence[float] = ()
) -> tuple[float, float]:
    """Return the range `[start_s, end_s)` padded within its video, and ended at these cuts (see `MomentRule.snap`)."""
    first_s, last_s = max(start_s - pad_s, min(video.start_s, start_s)), min(end_s + pad_s, max(video.end_s, end_s))
    before_s = max((each for each in cuts_s if each <= start_s + INSIDE_S), default=-math.inf)
    after_s = min((each for each in cuts_s if each >= end_s - INSIDE_S and each > start_s + INSIDE_S), default=math.inf)
    return before_s if before_s >= first_s - SNAP_S else first_s, after_s if after_s <= last_s + SNAP_S else last_s


def cut_times(segments: Sequence[SegmentRow]) -> list[float]:
    """Return the times at which shots begin, and the video's begin and end.

    Two windows side by side have no cut between them.
    """
    inner = [after.start_s for before, after in pairwise(segments) if SHOT in (before.kind, after.kind)]
    return [segments[0].start_s, *inner, segments[-1].end_s] if segments else []


def _joined(moments: Sequence[Moment], join_s: float) -> list[Moment]:
    places = {id(each): place for place, each in enumerate(moments)}
    groups: list[list[Moment]] = []
    for of_video in by_video(moments).values():
        until_s = -math.inf
        for each in in_time_order(of_video):
            if each.start_s - until_s > join_s:
                groups.append([])
            groups[-1].append(each)
            until_s = max(until_s, each.end_s) if len(groups[-1]) > 1 else each.end_s
    groups.sort(key=lambda group: min(places[id(each)] for each in group))
    return [group[0] if len(group) == 1 else _as_one(group) for group in groups]


def _as_one(moments: Sequence[Moment]) -> Moment:
    """Moments of one video, in time order, as one: all that they are labelled with, and the best score."""
    labels = " / ".join(dict.fromkeys(each.label for each in moments if each.label))
    scores = [each.score for each in moments if each.score is not None]
    sources, speakers = {each.source for each in moments}, {each.speaker for each in moments}
    end_s = max(each.end_s for each in moments)
    return Moment(
        moments[0].video,
        moments[0].start_s,
        end_s,
        labels,
        max(scores, default=None),
        sources.pop() if len(sources) == 1 else "both",
        speakers.pop() if len(speakers) == 1 else None,
    )
