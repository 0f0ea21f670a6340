"""Clips of videos under tags, with the words of each, and the clip whose pictures match a text best."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from agent.core.question import Note, Video
from agent.environment import Environment
from agent.variants.longvideoagent.requests import Clip

if TYPE_CHECKING:
    from index.rows import SegmentRow

LEAST_CLIP_S = 10.0
"""Captions of a video without pictures may be of a second each: they are joined until a clip is so long."""


def tagged_clips(environment: Environment) -> Iterator[Clip]:
    """The library's segments of all videos under consecutive numbers; a video without any is one clip.

    A line belongs to the clip in which it begins. Captions speak for videos that have no transcript.
    """
    number = 0
    for video in environment.videos:
        spans = _spans(environment, video)
        lines = environment.transcript(video.video_id, video.start_s, video.end_s)
        words = [(line.start_s, f"{line.speaker}: {line.text}" if line.speaker else line.text) for line in lines]
        if not lines:
            words = [(note.start_s, note.text) for note in environment.captions(video.video_id)]
        texts = _shared_out(words, [start_s for start_s, _ in spans])
        for (start_s, end_s), text in zip(spans, texts, strict=True):
            number += 1
            yield Clip(number, video.video_id, start_s, end_s, text, "transcript" if lines else "captions")


def _spans(environment: Environment, video: Video) -> list[tuple[float, float]]:
    """The ranges of a video's clips."""
    spans: list[tuple[float, float]] = []
    rows: Sequence[SegmentRow | Note] = environment.segments(video.video_id)
    if not rows and not video.has_pictures:
        rows = environment.words(video.video_id)
    for row in rows:
        if spans and not video.has_pictures and spans[-1][1] - spans[-1][0] < LEAST_CLIP_S:
            spans[-1] = spans[-1][0], max(spans[-1][1], row.end_s)
        else:
            spans.append((row.start_s, row.end_s))
    return spans or [(video.start_s, video.end_s)]


def _shared_out(words: Sequence[tuple[float, str]], starts_s: Sequence[float]) -> list[str]:
    """The words of each clip in one line; what comes before the first clip is the first one's."""
    texts: list[list[str]] = [[] for _ in starts_s]
    for start_s, text in words:
        texts[max(0, int(np.searchsorted(starts_s, start_s, side="right")) - 1)] += text.split()
    return [" ".join(each) for each in texts]


def best_matching_clips(
    environment: Environment, clips: Sequence[Clip], text: str, visited: Collection[int], window: int
) -> list[Clip]:
    """The clip, not visited yet, with the frame that matches a text best, amid up to `window` consecutive ones."""
    among = [video.video_id for video in environment.videos]
    matches = {video_id: environment.deviations([text], video_id, among)[:, 0] for video_id in among}

    def match(clip: Clip) -> float:
        times_s = environment.times(clip.video_id)
        # the picture at the start of a clip may be stored at an earlier time
        low = max(0, int(np.searchsorted(times_s, clip.start_s, side="right")) - 1)
        high = max(low + 1, int(np.searchsorted(times_s, clip.end_s, side="left")))
        return float(matches[clip.video_id][low:high].max())

    left = [clip for clip in clips if clip.number not in visited]
    if not left:
        return []
    best = max(left, key=match)
    alongside = [clip for clip in clips if clip.video_id == best.video_id]
    first = min(alongside.index(best) - (window - 1) // 2, len(alongside) - window)
    return alongside[max(0, first) :][:window]
