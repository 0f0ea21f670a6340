"""Join readings of successive frames to lines of text with the time that each is on screen.

Two readings are of one line where their texts differ by a few letters and their boxes overlap, or where nearly equal
text has moved a little. A line ends at the first frame that does not show it; one frame in which a reader overlooked
it does not end it. What stands where another text stood is another line: a number that changes makes one too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import regex

from kinodex.pipeline.models.boxes import Box, box_ious
from kinodex.pipeline.models.screen_text.reader import Reading


def edit_distance(one: str, other: str) -> int:
    """Count the fewest single-character edits that turn one text into the other (Levenshtein 1966)."""
    if len(one) < len(other):
        one, other = other, one
    before = list(range(len(other) + 1))
    for row, letter in enumerate(one, start=1):
        now = [row]
        for column, against in enumerate(other, start=1):
            now.append(min(before[column] + 1, now[-1] + 1, before[column - 1] + (letter != against)))
        before = now
    return before[-1]


def similarity(one: str, other: str) -> float:
    """Compare two texts: 1 for equal ones, 0 for those without a letter in its place."""
    longest = max(len(one), len(other))
    return 1 - edit_distance(one, other) / longest if longest else 1.0


_LETTERS = regex.compile(r"[^\W_]+")
MIN_OVERLAP = 0.3
ALIKE, NEARLY_EQUAL = 0.6, 0.85
"""Similarity of the texts of one line, in its place and where it has moved."""
MOST_MOVED = 0.25
"""Distance between the middles of two boxes, in parts of the picture's sides."""
MISSED_FRAMES, MISSED_S = 1, 3.0
"""Frames, one after the other, that may lack a line, and how long they may stand."""
SURE = 0.9
"""From this confidence on digits are taken as they were read."""


class ScreenLine(NamedTuple):
    """A line of text that is on screen in `[start_s, end_s)`: its best reading, read in this many `frames`."""

    start_s: float
    end_s: float
    text: str
    confidence: float
    box: Box
    frames: int


@dataclass(slots=True)
class _Track:
    """A line that may still be on screen, and its readings so far."""

    start_s: float
    readings: list[Reading] = field(default_factory=list)
    gone_s: float | None = None
    """Time of the first frame that did not show it, since it was last read."""
    missed: int = 0

    def is_over(self, time_s: float) -> bool:
        return self.missed > MISSED_FRAMES or (self.gone_s is not None and time_s - self.gone_s > MISSED_S)

    def line(self, end_s: float) -> ScreenLine:
        """Choose the text with the highest sum of confidences: one frame that was read well may still be wrong."""
        sums: dict[str, float] = defaultdict(float)
        for each in self.readings:
            sums[each.text] += each.confidence
        best = max(self.readings, key=lambda each: (sums[each.text], each.confidence))
        ended_s = end_s if self.gone_s is None else self.gone_s
        return ScreenLine(self.start_s, ended_s, best.text, best.confidence, best.box, len(self.readings))


def join_readings(frames: Sequence[Sequence[Reading]], times_s: Sequence[float], end_s: float) -> list[ScreenLine]:
    """Join the readings of frames at `times_s` to lines, by start and from top down; a frame stays until the next."""
    lines: list[ScreenLine] = []
    tracks: list[_Track] = []
    for readings, time_s in zip(frames, times_s, strict=True):
        lines += [track.line(end_s) for track in tracks if track.is_over(time_s)]
        tracks = [track for track in tracks if not track.is_over(time_s)]
        _take_frame(tracks, readings, time_s)
    lines += [track.line(end_s) for track in tracks]
    return sorted(lines, key=lambda line: (line.start_s, line.box[1], line.box[0]))


def _take_frame(tracks: list[_Track], readings: Sequence[Reading], time_s: float) -> None:
    """Continue tracks with the readings of a frame, and append new ones."""
    taken = _match(tracks, readings)
    for place, track in enumerate(tracks):
        if place not in taken.values():
            track.missed += 1
            track.gone_s = time_s if track.gone_s is None else track.gone_s
    for number, reading in enumerate(readings):
        if number in taken:
            track = tracks[taken[number]]
            track.readings.append(reading)
            track.missed, track.gone_s = 0, None
        else:
            tracks.append(_Track(time_s, [reading]))


def _match(tracks: Sequence[_Track], readings: Sequence[Reading]) -> dict[int, int]:
    """Assign readings to tracks, by their places, each to one: the likest pairs first."""
    if not tracks or not readings:
        return {}
    overlaps = box_ious([each.box for each in readings], [track.readings[-1].box for track in tracks])
    pairs = sorted(
        (-fit, number, place)
        for number, reading in enumerate(readings)
        for place, track in enumerate(tracks)
        if (fit := _fit(track.readings[-1], reading, float(overlaps[number, place])))
    )
    taken: dict[int, int] = {}
    for _, number, place in pairs:
        if number not in taken and place not in taken.values():
            taken[number] = place
    return taken


def _fit(last: Reading, reading: Reading, overlap: float) -> float:
    """Score two readings as of one line; 0 for those of two."""
    if overlap < MIN_OVERLAP and _moved(last.box, reading.box) > MOST_MOVED:
        return 0.0
    one, other = _letters(last.text), _letters(reading.text)
    numbers = _digits(one), _digits(other)
    if all(numbers) and numbers[0] != numbers[1] and min(last.confidence, reading.confidence) >= SURE:
        return 0.0
    alike = similarity(one, other)
    return alike + overlap if alike >= (ALIKE if overlap >= MIN_OVERLAP else NEARLY_EQUAL) else 0.0


def _letters(text: str) -> str:
    """Letters with their marks, and digits, alone: readers differ most in blanks and points."""
    return "".join(_LETTERS.findall(text.casefold()))


def _digits(text: str) -> str:
    return "".join(filter(str.isdigit, text))


def _moved(one: Box, other: Box) -> float:
    return max(abs(one[axis] + one[axis + 2] - other[axis] - other[axis + 2]) / 2 for axis in (0, 1))
