"""Clips of videos under tags, with the words of each, and the clip whose pictures match a text best."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from agent.core.question import Note, Video
from agent.environment import Environment
from agent.retrieval.line_matches import AnchorsFrom
from agent.variants.longvideoagent.requests import Clip

if TYPE_CHECKING:
    from index.rows import SegmentRow, TranscriptRow

CLIP_S = 60.0
"""TVQA's clips last 60 to 90 s, and the paper's agents work on them."""
SHORTEST_CLIP_S = 10.0
"""Captions of a video without pictures may be of a second each: a clip of them is at least so long."""
LARGEST_SHIFT = 1 / 3
"""The share of a clip's length by which its border moves to the border of a segment."""
SPOKEN_SHARE = 0.5
"""A caption fills a gap of the transcript if people speak for less than this share of its time."""


def tagged_clips(environment: Environment, clip_s: float = CLIP_S) -> Iterator[Clip]:
    """Clips of about `clip_s` of all videos under consecutive numbers; 0: the library's segments.

    A line, spoken or on screen, belongs to the clip in which it begins. Captions stand in the place of a transcript
    where nobody speaks.
    """
    number = 0
    for video in environment.videos:
        spans = _spans(environment, video, clip_s)
        starts_s = [start_s for start_s, _ in spans]
        lines = environment.transcript(video.video_id, video.start_s, video.end_s)
        silent = _in_gaps(environment.captions(video.video_id), lines)
        said = _shared_out([(line.start_s, _spoken(line)) for line in lines], starts_s)
        shown = _shared_out([(note.start_s, note.text) for note in silent], starts_s)
        titles = environment.screen_text(video.video_id, video.start_s, video.end_s)
        written = _shared_out([(row.start_s, row.text) for row in titles], starts_s, " / ")
        for span, spoken, seen, text in zip(spans, said, shown, written, strict=True):
            number += 1
            if spoken:
                yield Clip(number, video.video_id, *span, spoken, "transcript", seen, text)
            else:
                yield Clip(number, video.video_id, *span, seen, "captions" if seen else "", written=text)


def _spans(environment: Environment, video: Video, clip_s: float) -> list[tuple[float, float]]:
    """The ranges of a video's clips."""
    rows: Sequence[SegmentRow | Note] = environment.segments(video.video_id)
    if not rows and not video.has_pictures:
        rows = environment.words(video.video_id)
    if rows and not clip_s and video.has_pictures:
        return [(row.start_s, row.end_s) for row in rows]
    borders_s = [row.start_s for row in rows if video.start_s < row.start_s < video.end_s]
    if not clip_s and video.has_pictures:
        return [(video.start_s, video.end_s)]
    cuts_s = [video.start_s, *_cuts(video, borders_s, max(clip_s, SHORTEST_CLIP_S)), video.end_s]
    return list(pairwise(cuts_s))


def _cuts(video: Video, borders_s: Sequence[float], clip_s: float) -> Iterator[float]:
    """The times between equal clips of about `clip_s`, each moved to the border of a segment that is near enough."""
    count = max(1, round(video.duration_s / clip_s))
    length_s = video.duration_s / count
    for number in range(1, count):
        equal_s = video.start_s + number * length_s
        near_s = min(borders_s, key=lambda border_s: abs(border_s - equal_s), default=equal_s)
        yield near_s if abs(near_s - equal_s) <= LARGEST_SHIFT * length_s else equal_s


def _in_gaps(captions: Sequence[Note], lines: Sequence[TranscriptRow]) -> list[Note]:
    """The captions of those times in which few lines are spoken."""
    starts_s = np.array([line.start_s for line in lines])
    ends_s = np.array([line.end_s for line in lines])

    def spoken_s(note: Note) -> float:
        both_s = np.minimum(ends_s, note.end_s) - np.maximum(starts_s, note.start_s)
        return float(np.maximum(both_s, 0.0).sum())

    return [note for note in captions if spoken_s(note) < SPOKEN_SHARE * max(note.end_s - note.start_s, 1e-6)]


def _spoken(line: TranscriptRow) -> str:
    return f"{line.speaker}: {line.text}" if line.speaker else line.text


def _shared_out(words: Sequence[tuple[float, str]], starts_s: Sequence[float], between: str = " ") -> list[str]:
    """The words of each clip in one line; what comes before the first clip is the first one's."""
    texts: list[list[str]] = [[] for _ in starts_s]
    for start_s, text in words:
        texts[max(0, int(np.searchsorted(starts_s, start_s, side="right")) - 1)].append(" ".join(text.split()))
    return [between.join(filter(None, each)) for each in texts]


def best_matching_clips(
    environment: Environment,
    clips: Sequence[Clip],
    text: str,
    visited: Collection[int],
    window: int,
    anchors_from: AnchorsFrom = "both",
) -> list[Clip]:
    """The clip, not visited yet, with the frame that matches a text best, amid up to `window` consecutive ones.

    A frame matches by its picture or by a line at its time (`Environment.search`); with `anchors_from` "words" by its
    picture where no line matches. None if all were visited, or nothing is stored of the others. Where a video has no
    frames, its words are matched.
    """
    among = [each.video_id for each in environment.videos if each.has_pictures or environment.words(each.video_id)]
    matches = _matches(environment, text, among, anchors_from)
    if all(np.isneginf(each).all() for each in matches.values()):
        matches = _matches(environment, text, among, "pictures")

    def match(clip: Clip) -> float:
        times_s = environment.times(clip.video_id)
        # the picture at the start of a clip may be stored at an earlier time
        low = max(0, int(np.searchsorted(times_s, clip.start_s, side="right")) - 1)
        high = max(low + 1, int(np.searchsorted(times_s, clip.end_s, side="left")))
        return float(matches[clip.video_id][low:high].max())

    left = [clip for clip in clips if clip.number not in visited and clip.video_id in matches]
    if not left:
        return []
    best = max(left, key=match)
    alongside = [clip for clip in clips if clip.video_id == best.video_id]
    first = min(alongside.index(best) - (window - 1) // 2, len(alongside) - window)
    return alongside[max(0, first) :][:window]


def _matches(
    environment: Environment, text: str, among: Sequence[str], anchors_from: AnchorsFrom
) -> dict[str, NDArray[np.float64]]:
    """Deviations of the frames of each video, by the better of picture and words."""
    found = {video_id: environment.matches([text], video_id, among, anchors_from) for video_id in among}
    return {video_id: np.maximum(*both)[:, 0] for video_id, both in found.items()}
