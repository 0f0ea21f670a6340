"""Cuts of a video on their frames: sought in the decoded frames around each place where its vectors change.

A hard cut is one step between two frames that is large, and much larger than the steps around it (as PySceneDetect's
adaptive detector has it, which weighs a step against its neighbours, so that no camera movement is a cut). A dissolve
or fade is a run of frames each of which is the same mixture of the first and the last as it lies between them in time:
so they are made, and nothing that moves looks so. Through black it is two such runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kinodex.pipeline.decoding.pyav_reader import PyavReader
from kinodex.pipeline.decoding.readers import TimedFrame
from kinodex.pipeline.segments import changes

Pictures = NDArray[np.float32]
"""Small pictures `[n, values]`, each value 0 to 255."""

SMALL_PX = (48, 28)
"""Width and height of the pictures that are compared: noise and grain are gone, and it costs next to nothing."""
CUT_STEP, CUT_RATIO, CUT_AROUND = 15.0, 2.0, 4
"""At a cut the mean value of the small picture changes by `CUT_STEP` or more, and by `CUT_RATIO` times the largest of
the `CUT_AROUND` steps on either side. To each of those steps one is added."""
FADE_STEP, FADE_RESIDUE = 20.0, 0.2
"""A fade changes it by `FADE_STEP` or more; no frame in it is further from the mixture than `FADE_RESIDUE` of that."""
FADE_S = (0.15, 2.5)
"""Shortest and longest dissolve or fade, in seconds."""
INSIDE = np.array([0.1, 0.25, 0.5, 0.75, 0.9])
"""Where in a run its frames are compared with the mixture."""
WEIGHT = 2.0
"""Of the distance from the mixture against the change: a run is grown while this pays."""
DARK, BLACK_S = 10.0, 1.0
"""Mean value of a black picture, and how long it may stay black between two fades."""
MARGIN_S = 1.5
"""So much before and after a place is decoded too: a dissolve is longer than the samples are apart."""
SUSPECT_SHARE = 0.5
MOST_FRAMES, OVERLAP_FRAMES = 3000, 300
"""Small pictures in memory at a time, and how many are looked at twice where a stretch is longer."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A cut before the frame at `time_s`; a dissolve or fade around it lasts for `[fade_start_s, fade_end_s)`.

    Times are those of frames. Both ends are None for a hard cut.
    """

    time_s: float
    fade_start_s: float | None = None
    fade_end_s: float | None = None


def cut_windows(times_s: Sequence[float], distances: Sequence[float]) -> list[tuple[float, float]]:
    """Return the times `[first, last]` to be decoded, in order and apart.

    They lie around the places where the vectors of samples change.

    `distances` are those of neighbouring samples at `times_s`, one fewer; a change of `SUSPECT_SHARE` of what makes a
    shot will do, for the decoded frames decide.
    """
    windows: list[tuple[float, float]] = []
    for at in changes(distances, SUSPECT_SHARE):
        first_s, last_s = times_s[at] - MARGIN_S, times_s[at + 1] + MARGIN_S
        if windows and first_s <= windows[-1][1]:
            windows[-1] = windows[-1][0], last_s
        else:
            windows.append((first_s, last_s))
    return windows


def find_cuts(path: Path, name: str, windows_s: Sequence[tuple[float, float]], playlist: bool = False) -> Iterator[Cut]:
    """Decode a video within the times of `cut_windows` and yield its cuts in order; raises a VideoError."""
    reader = PyavReader(path, name, playlist)
    last_s = -math.inf
    for times_s, pictures in _stretches(reader.frames_in(windows_s)):
        for cut in cuts_among(times_s, pictures):
            if (cut.time_s if cut.fade_start_s is None else cut.fade_start_s) > last_s:  # not one that was found twice
                last_s = cut.time_s if cut.fade_end_s is None else cut.fade_end_s
                yield cut


def _stretches(frames: Iterable[TimedFrame]) -> Iterator[tuple[list[float], Pictures]]:
    """Yield the times and small pictures of frames that follow one another; of a long stretch in parts that overlap."""
    from av import FFmpegError
    from av.video.reformatter import Interpolation, VideoReformatter

    reformatter, (width_px, height_px) = VideoReformatter(), SMALL_PX
    times_s: list[float] = []
    pictures: list[NDArray[np.float32]] = []
    window = -1
    for frame in frames:
        try:
            small = reformatter.reformat(
                frame.frame, width_px, height_px, "rgb24", interpolation=Interpolation.AREA, threads=1
            )
        except FFmpegError:
            continue  # damage that shows only now
        if frame.number != window or len(times_s) >= MOST_FRAMES:
            if times_s:
                yield times_s, np.stack(pictures)
            kept = OVERLAP_FRAMES if frame.number == window else 0
            times_s, pictures = times_s[len(times_s) - kept :], pictures[len(pictures) - kept :]
            window = frame.number
        times_s.append(frame.time_s)
        pictures.append(small.to_ndarray().ravel().astype(np.float32))
    if times_s:
        yield times_s, np.stack(pictures)


def cuts_among(times_s: Sequence[float], pictures: Pictures) -> list[Cut]:
    """Return the cuts among frames `[n]` that follow one another, in order."""
    hard = _hard_cuts(pictures)
    fades: list[tuple[int, int]] = []
    for first, end in pairwise([0, *hard, len(pictures)]):
        fades += _fades(times_s, pictures, first, end - 1)
    found: list[Cut] = []
    for first, last in _through_black(fades, times_s, pictures):
        # The frame before the first that is mixed, and the first that is not; a hard cut at either end is its cut.
        at_end = [cut for cut in hard if cut in (first, first + 1, last, last + 1)]
        middle_s = (times_s[first] + times_s[last]) / 2
        place = at_end[0] if at_end else int(np.searchsorted(times_s[: last + 1], middle_s))
        if at_end:
            hard.remove(place)
        begin = first if place == first else first + 1
        found.append(Cut(times_s[place], times_s[min(begin, place)], times_s[last]))
    return sorted([*found, *(Cut(times_s[at]) for at in hard)], key=lambda cut: cut.time_s)


def _hard_cuts(pictures: Pictures) -> list[int]:
    steps = np.abs(np.diff(pictures, axis=0)).mean(axis=1)
    around = np.pad(steps, CUT_AROUND)
    others = [at for at in range(2 * CUT_AROUND + 1) if at != CUT_AROUND]
    most = np.lib.stride_tricks.sliding_window_view(around, 2 * CUT_AROUND + 1)[:, others].max(axis=1, initial=0.0)
    return (np.flatnonzero((steps >= CUT_STEP) & (steps >= CUT_RATIO * (most + 1.0))) + 1).tolist()


def _fades(times_s: Sequence[float], pictures: Pictures, first: int, last: int) -> list[tuple[int, int]]:
    """Return the fades among the frames `first` to `last`: the last frame before each, and the first after it."""
    if last - first < 2 or times_s[last] - times_s[first] < FADE_S[0]:
        return []
    best = _best_run(times_s, pictures, first, last)
    if best is None:
        return []
    return [*_fades(times_s, pictures, first, best[0]), best, *_fades(times_s, pictures, best[1], last)]


def _best_run(times_s: Sequence[float], pictures: Pictures, first: int, last: int) -> tuple[int, int] | None:
    """Return the run of frames that is most like a fade: looked for coarsely, and then moved to its ends."""
    step_s = (times_s[last] - times_s[first]) / (last - first)
    shortest, longest = max(2, round(FADE_S[0] / step_s)), min(round(FADE_S[1] / step_s), last - first)
    if longest < shortest:
        return None
    best, most = None, 0.0
    for length in sorted({int(each) for each in np.geomspace(shortest, longest, 10).round()}):
        begins = np.arange(first, last - length + 1, max(1, length // 4))
        values = _likeness(pictures, begins, begins + length)
        at = int(np.argmax(values))
        if values[at] > most:
            best, most = (int(begins[at]), int(begins[at]) + length), float(values[at])
    while best is not None:
        begin, end = best
        near = [(begin + a, end + b) for a in range(-2, 3) for b in range(-2, 3)]
        near = [(a, b) for a, b in near if first <= a and b <= last and shortest <= b - a <= longest]
        values = _likeness(pictures, *np.array(near).T)
        if (at := int(np.argmax(values))) is None or values[at] <= most:
            return best
        best, most = near[at], float(values[at])
    return None


def _likeness(pictures: Pictures, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.float64]:
    """Change over each run of frames, less `WEIGHT` times its distance from a mixture; 0 for what is no fade."""
    before, after = pictures[begins], pictures[ends]
    change = np.abs(after - before).mean(axis=1)
    places = begins[:, None] + np.rint((ends - begins)[:, None] * INSIDE).astype(np.int64)
    shares = ((places - begins[:, None]) / (ends - begins)[:, None]).astype(np.float32)
    residue = np.zeros(len(begins))
    for column in range(len(INSIDE)):
        share = shares[:, column, None]
        mixture = before * (1 - share) + after * share
        residue = np.maximum(residue, np.abs(pictures[places[:, column]] - mixture).mean(axis=1))
    is_fade = (change >= FADE_STEP) & (residue <= FADE_RESIDUE * change)
    return np.where(is_fade, change - WEIGHT * residue, 0.0)


def _through_black(
    fades: Sequence[tuple[int, int]], times_s: Sequence[float], pictures: Pictures
) -> list[tuple[int, int]]:
    """Fades, those to black and from it as one."""
    joined: list[tuple[int, int]] = []
    for first, last in fades:
        black = pictures[joined[-1][1] : first + 1] if joined else pictures[:0]
        is_short = bool(joined) and times_s[first] - times_s[joined[-1][1]] <= BLACK_S
        if is_short and black.mean(axis=1).max(initial=0.0) <= DARK:
            joined[-1] = joined[-1][0], last
        else:
            joined.append((first, last))
    return joined
