"""Clips of videos under tags, with what is said in each, and the clip whose pictures match a text best."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.videos import Video
from kinodex.agent.videos.environment import Environment
from kinodex.agent.videos.library_videos import AnchorsFrom

if TYPE_CHECKING:
    from kinodex.index.rows import SegmentRow

CLIP_S = 60.0
"""TVQA's clips last 60 to 90 s, and the paper's agents work on them."""
SHORTEST_CLIP_S = 10.0
"""A video without pictures may be in segments of a second each: a clip of them is at least so long."""
LARGEST_SHIFT = 1 / 3
"""The share of a clip's length by which its border moves to the border of a segment."""


def tagged_clips(environment: Environment, clip_s: float = CLIP_S) -> Iterator[Clip]:
    """Clips of all videos under consecutive numbers, each with its subtitles.

    An episode of LongTVQA has clips of its own; other videos are cut into clips of about `clip_s` seconds, or into the
    library's segments if that is 0. A line belongs to the clip in which it begins.
    """
    number = 0
    for video in environment.videos:
        spans = _spans(environment, video, clip_s)
        lines = environment.lines(video.video_id, ["speech"])
        for span, text in zip(spans, _shared_out(lines, [start_s for start_s, _ in spans]), strict=True):
            number += 1
            yield Clip(number, video.video_id, *span, text)


def _spans(environment: Environment, video: Video, clip_s: float) -> list[tuple[float, float]]:
    segments = environment.segments(video.video_id)
    if segments and (all(row.clip_name for row in segments) or (not clip_s and video.has_pictures)):
        return [(row.start_s, row.end_s) for row in segments]
    rows: Sequence[SegmentRow | Note] = segments
    if not rows and not video.has_pictures:
        rows = environment.words(video.video_id)
    borders_s = [row.start_s for row in rows if video.start_s < row.start_s < video.end_s]
    length_s = max(clip_s, SHORTEST_CLIP_S) if clip_s or not video.has_pictures else video.duration_s
    return list(pairwise([video.start_s, *_cuts(video, borders_s, length_s), video.end_s]))


def _cuts(video: Video, borders_s: Sequence[float], clip_s: float) -> Iterator[float]:
    """Yield the times between equal clips of about `clip_s`, each moved to the border of a segment that is near
    enough.
    """
    count = max(1, round(video.duration_s / clip_s))
    length_s = video.duration_s / count
    for number in range(1, count):
        equal_s = video.start_s + number * length_s
        near_s = min(borders_s, key=lambda border_s: abs(border_s - equal_s), default=equal_s)
        yield near_s if abs(near_s - equal_s) <= LARGEST_SHIFT * length_s else equal_s


def _shared_out(lines: Sequence[Note], starts_s: Sequence[float]) -> list[str]:
    """Return what is said in each clip in one line; what comes before the first clip is the first one's."""
    texts: list[list[str]] = [[] for _ in starts_s]
    for line in lines:
        at = max(0, int(np.searchsorted(starts_s, line.start_s, side="right")) - 1)
        texts[at].append(" ".join(line.text.split()))
    return [" ".join(filter(None, each)) for each in texts]


def best_matching_clips(environment: Environment, clips: Sequence[Clip], text: str, window: int) -> list[Clip]:
    """Return the clip with the picture that matches a text best, amid up to `window` consecutive ones.

    Where a video has no pictures, its words are matched. None if nothing is stored of any clip.
    """
    among = [each.video_id for each in environment.videos if each.has_pictures or environment.words(each.video_id)]
    by: AnchorsFrom = "frames" if environment.has_vectors else "words"
    matches = {each: np.maximum(*environment.matches([text], each, among, by))[:, 0] for each in among}

    def match(clip: Clip) -> float:
        times_s = environment.times(clip.video_id)
        # the picture at the start of a clip may be stored at an earlier time
        low = max(0, int(np.searchsorted(times_s, clip.start_s, side="right")) - 1)
        high = max(low + 1, int(np.searchsorted(times_s, clip.end_s, side="left")))
        return float(matches[clip.video_id][low:high].max())

    best = max((clip for clip in clips if clip.video_id in matches), key=match, default=None)
    if best is None:
        return []
    alongside = [clip for clip in clips if clip.video_id == best.video_id]
    first = min(alongside.index(best) - (window - 1) // 2, len(alongside) - window)
    return alongside[max(0, first) :][:window]


@dataclass(frozen=True, slots=True)
class Clip:
    """The range [start_s, end_s) of a video under a tag, <clip_N>, and its subtitles, `text`.

    `number` counts from 1 through all videos of a question.
    """

    number: int
    video_id: str
    start_s: float
    end_s: float
    text: str = ""

    @property
    def words(self) -> str:
        """Its subtitles, as prompts quote them."""
        return f'said: "{self.text}"' if self.text else "nothing is said"
