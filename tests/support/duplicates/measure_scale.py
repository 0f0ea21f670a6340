"""CPU seconds of `kinodex duplicates` by number of videos: `python -m tests.support.duplicates.measure_scale FOLDER`.

Libraries of made-up vectors (a SIMULATION: no video stands behind them): films of ten minutes, one frame a second, one
in twenty of them a part of the film before it. Each library is searched in memory and through its vector index.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from kinodex.index.library import Library
from kinodex.index.maintain import maintain
from kinodex.jobs.duplicates import find_duplicates
from tests.support.duplicates.walks import DIM, shot, walk
from tests.support.libraries.random_library import SETTINGS, MadeVideo, fingerprint, write

LENGTH_S, CUT_EVERY = 600, 20
"""Of each film, and every which one is a cut of the one before."""


def make_library(folder: Path, videos: int) -> Library:
    library = Library.create(str(folder), SETTINGS, fingerprint(dim=DIM))
    film = walk(LENGTH_S, 0)
    for number in range(videos):
        is_cut = number % CUT_EVERY == CUT_EVERY - 1
        film = film if is_cut else walk(LENGTH_S, number)
        units = shot(film, 100, 400, noise=0.05, seed=number) if is_cut else shot(film, 0, LENGTH_S)
        write(library, MadeVideo(f"{number:05}", units.astype(np.float16)))
    return library


def main(folder: Path, *sizes: int) -> None:
    for videos in sizes:
        library = make_library(folder / f"library-{videos}", videos)
        maintain(library)
        for name, most in {"in memory": 10**9, "by index": 0}.items():
            began, wall = time.process_time(), time.monotonic()
            found = find_duplicates(library, in_memory_frames=most)
            cpu_s, wall_s = time.process_time() - began, time.monotonic() - wall
            right = sum(int(each.b.video_id) - int(each.a.video_id) == 1 for each in found)
            print(
                f"{videos} videos, {name}: {cpu_s:.1f} CPU s ({wall_s:.0f} s), {right} of {videos // CUT_EVERY}",
                end=" ",
            )
            print(f"cuts, {len(found) - right} others", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *(map(int, sys.argv[2:]) if len(sys.argv) > 2 else (100, 400, 1600)))
