"""Measure what `library.map` costs beside the function itself: `python -m tests.bench.mapping LIBRARY`.

The function itself is run by a plain loop over the same stored pictures, decoded, in batches of the same size. Both run
in one process in turns, on a copy of the library each time; CPU seconds count, of which other work takes none.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

import kinodex

BATCH = 32


def sharpness(pictures: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Mean difference of neighbouring rows: a second of work for a thousand pictures."""
    grey = pictures.mean(axis=3)
    found: NDArray[np.float64] = np.abs(np.diff(grey, axis=1)).mean(axis=(1, 2))
    return found


def nothing(pictures: NDArray[np.uint8]) -> NDArray[np.float64]:
    """No work at all: what is left is the reading."""
    return np.zeros(len(pictures))


def plain_loop(library: kinodex.Library, function: Callable[..., Any]) -> None:
    for video in library.videos():
        waiting = []
        for frame in library.all_frames(video):
            waiting.append(np.asarray(frame.image))
            if len(waiting) == BATCH:
                function(np.stack(waiting))
                waiting = []
        if waiting:
            function(np.stack(waiting))


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall_s, time.process_time() - cpu_s


def main(
    place: Annotated[Path, typer.Argument(help="A library, which stays as it is.")],
    rounds: Annotated[int, typer.Option(min=1, help="Rounds; medians count.")] = 5,
) -> None:
    """Measure a function over all frames, by `map` and by a plain loop."""
    print("| function | plain loop, wall s | CPU s | map, wall s | CPU s | CPU, map to loop |")
    print("|---|---|---|---|---|---|")
    frames = kinodex.open(place).info().frames
    for function in (sharpness, nothing):
        loops, maps = [], []
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as folder:
                library = kinodex.open(shutil.copytree(place, f"{folder}/library"))
                loops.append(seconds(lambda: plain_loop(library, function)))  # noqa: B023
                maps.append(seconds(lambda: library.map(function, batch=BATCH)))  # noqa: B023
        loop, mapped = ([statistics.median(column) for column in zip(*each, strict=True)] for each in (loops, maps))
        figures = f"{loop[0]:.2f} | {loop[1]:.2f} | {mapped[0]:.2f} | {mapped[1]:.2f} | {mapped[1] / loop[1]:.2f}"
        print(f"| `{function.__name__}`, {frames} frames | {figures} |")


if __name__ == "__main__":
    typer.run(main)
