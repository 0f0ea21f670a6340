"""Measure parts and speeds: `python -m tests.support.duplicates.measure_edits LIBRARY`.

A SIMULATION on real vectors: each video of 60 frames or more is compared with itself after a tenth was cut out of its
middle, and after it was played faster or slower by taking other frames. Prints the share of its time that is mapped to
the right time, to a second.
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

from kinodex.index.library import Library
from kinodex.jobs.duplicates import Alignment, Timeline, read_mean, read_timeline, shared_parts

LEAST_FRAMES, LEAST_S = 60, 5.0
SPEEDS = (1.0, 1.05, 1.1, 1 / 1.1)


def main(library: str) -> None:
    opened = Library.open(library)
    ids = [row.video_id for row in opened.videos() if row.frames >= LEAST_FRAMES]
    mean = read_mean(opened, [row.video_id for row in opened.videos() if row.frames], None)
    films = [read_timeline(opened, video_id, None, mean) for video_id in ids]
    print(f"{len(films)} films; cut: {_share([_cut(film) for film in films])}", end="")
    for speed in SPEEDS:
        print(f"; {speed:.3f} of the speed: {_share([_played(film, speed) for film in films])}", end="")
    print()


def _cut(film: Timeline) -> float:
    count = len(film.times_s)
    first, end = count // 2, count // 2 + count // 10
    kept = np.concatenate([np.arange(first), np.arange(end, count)])
    times_s = np.arange(len(kept)) * film.gap_s
    begin_s, end_s = film.times_s[first], film.times_s[end]
    asked_s = film.times_s[kept]
    true_s = np.where(asked_s < begin_s, asked_s, asked_s - (end_s - begin_s)) - film.times_s[0]
    return _mapped(shared_parts(film, Timeline(times_s.astype(np.float64), film.units[kept]), LEAST_S), asked_s, true_s)


def _played(film: Timeline, speed: float) -> float:
    times_s = np.arange(0.13, (film.times_s[-1] - film.times_s[0]) / speed, film.gap_s)
    near = np.clip(np.round(times_s * speed / film.gap_s).astype(int), 0, len(film.units) - 1)
    parts = shared_parts(film, Timeline(times_s, film.units[near]), LEAST_S)
    return _mapped(parts, film.times_s, (film.times_s - film.times_s[0]) / speed)


def _mapped(parts: list[Alignment], asked_s: NDArray[np.float64], true_s: NDArray[np.float64]) -> float:
    """Share of times that the parts map to the right time; of several parts at a time the first counts."""
    found_s = np.full(len(asked_s), np.inf)
    for part in reversed(parts):
        for each in part.ranges:
            inside = (asked_s >= each.start_a_s) & (asked_s < each.end_a_s)
            found_s[inside] = part.speed * asked_s[inside] + part.offset_s
    return float((np.abs(found_s - true_s) <= 1.0).mean())


def _share(values: list[float]) -> str:
    return f"{np.mean(values):.3f}"


if __name__ == "__main__":
    main(sys.argv[1])
