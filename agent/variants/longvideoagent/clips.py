"""Clips of videos under tags, with the words of each, and the clip whose pictures match a text best."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.videos import Video
from kinodex.agent.videos.environment import Environment
from kinodex.agent.videos.library_videos import AnchorsFrom

if TYPE_CHECKING:
    from kinodex.index.rows import SegmentRow

CLIP_S = 60.0
"""TVQA's clips last 60 to 90 s, and the paper's agents work on them."""
SHORTEST_CLIP_S = 10.0
"""Captions of a video without pictures may be of a second each: a clip of them is at least so long."""
LARGEST_SHIFT = 1 / 3
"""The share of a clip's length by which its border moves to the border of a segment."""
SPOKEN_SHARE = 0.5
"""A caption fills a gap of the transcript if people speak for less than this share of its time."""


def tagged_clips(environment: Environment, clip_s: float = CLIP_S, *, subtitles_alone: bool = False) -> Iterator[Clip]:
    """Clips of about `clip_s` of all videos under consecutive numbers; 0: the library's segments.

    A line, spoken or on screen, belongs to the clip in which it begins. Captions stand in the place of a transcript
    where nobody speaks; with `subtitles_alone` neither they nor text on screen are read.
    """
    number = 0
    for video in environment.videos:
        spans = _spans(environment, video, clip_s)
        starts_s = [start_s for start_s, _ in spans]
        lines = environment.lines(video.video_id, ["speech"])
        silent = [] if subtitles_alone else _in_gaps(environment.captions(video.video_id), lines)
        said = _shared_out([(line.start_s, line.text) for line in lines], starts_s)
        shown = _shared_out([(note.start_s, note.text) for note in silent], starts_s)
        titles = (
            [] if subtitles_alone else environment.lines(video.video_id, ("screen_text",), video.start_s, video.end_s)
        )
        written = _shared_out([(row.start_s, row.text) for row in titles], starts_s, " / ")
        for range_s, heard, seen, text in zip(spans, said, shown, written, strict=True):
            number += 1
            if heard:
                yield Clip(number, video.video_id, *range_s, heard, "speech", seen, text)
            else:
                yield Clip(number, video.video_id, *range_s, seen, "captions" if seen else "", written=text)


def _spans(environment: Environment, video: Video, clip_s: float) -> list[tuple[float, float]]:
    rows: Sequence[SegmentRow | Note] = environment.segments(video.video_id)
    if not rows and not video.has_pictures:
        rows = environment.words(video.video_id)
    if not clip_s and video.has_pictures:
        return [(row.start_s, row.end_s) for row in rows] or [(video.start_s, video.end_s)]
    borders_s = [row.start_s for row in rows if video.start_s < row.start_s < video.end_s]
    cuts_s = [video.start_s, *_cuts(video, borders_s, max(clip_s, SHORTEST_CLIP_S)), video.end_s]
    return list(pairwise(cuts_s))


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


def _in_gaps(captions: Sequence[Note], lines: Sequence[Note]) -> list[Note]:
    starts_s = np.array([line.start_s for line in lines])
    ends_s = np.array([line.end_s for line in lines])

    def spoken_s(note: Note) -> float:
        both_s = np.minimum(ends_s, note.end_s) - np.maximum(starts_s, note.start_s)
        return float(np.maximum(both_s, 0.0).sum())

    return [note for note in captions if spoken_s(note) < SPOKEN_SHARE * max(note.end_s - note.start_s, 1e-6)]


def _shared_out(words: Sequence[tuple[float, str]], starts_s: Sequence[float], between: str = " ") -> list[str]:
    """Return the words of each clip in one line; what comes before the first clip is the first one's."""
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
    anchors_from: AnchorsFrom = "all",
) -> list[Clip]:
    """Return the clip, not visited yet, with the frame that matches a text best, amid up to `window` consecutive ones.

    A frame matches by its picture or by a line at its time (`Environment.search`); with `anchors_from` "words" by its
    picture where no line matches. None if all were visited, or nothing is stored of the others. Where a video has no
    frames, its words are matched, and without vectors words alone.
    """
    among = [each.video_id for each in environment.videos if each.has_pictures or environment.words(each.video_id)]
    matches = _matches(environment, text, among, anchors_from)
    if environment.has_vectors and all(np.isneginf(each).all() for each in matches.values()):
        matches = _matches(environment, text, among, "frames")

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
    found = {video_id: environment.matches([text], video_id, among, anchors_from) for video_id in among}
    return {video_id: np.maximum(*both)[:, 0] for video_id, both in found.items()}


@dataclass(frozen=True, slots=True)
class Clip:
    """The range [start_s, end_s) of a video under a tag, <clip_N>, and its words.

    `number` counts from 1 through all videos of a question; `source` of `text` is "speech" or "captions".
    """

    number: int
    video_id: str
    start_s: float
    end_s: float
    text: str = ""
    source: str = ""
    seen: str = ""
    """Captions of the times in which nobody speaks."""
    written: str = ""
    """Text that stands on screen."""

    @property
    def has_words(self) -> bool:
        return bool(self.text or self.written)

    @property
    def words(self) -> str:
        """Its words with their source: said, on screen or seen."""
        said = f'said: "{self.text}"' if self.text and self.source == "speech" else ""
        seen = self.seen if said else self.text
        kinds = (said, f'on screen: "{self.written}"' if self.written else "", f"seen: {seen}" if seen else "")
        return " ".join(filter(None, kinds)) or "no words are known of it"
