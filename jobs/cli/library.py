"""`kinodex info`, `report` and `frames`: read a library."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jobs.cli.options.library import FromOption, JsonOption, LibraryArgument, ToOption

if TYPE_CHECKING:
    from index.library import Library
    from index.rows import StoredFrame, VideoRow

BATCH = 200
"""Frames in memory at a time."""


def info(
    library: LibraryArgument,
    limit: Annotated[int, typer.Option(min=0, help="At most so many videos and so many failures; 0: all.")] = 100,
    json: JsonOption = False,
) -> None:
    """Show a library: videos, counts, spaces, settings, failures."""
    from index.library import Library
    from jobs.console.output import show_library

    show_library(Library.open(library), limit or None, as_json=json)


def report(
    library: LibraryArgument,
    run: Annotated[str | None, typer.Option(help="Only this run: its id, or its first digits.")] = None,
    json: JsonOption = False,
) -> None:
    """Show the runs that wrote a library: results, durations, and the time of each stage."""
    from index.library import Library
    from jobs.console.ingest_report import show_runs

    show_runs(Library.open(library), run, as_json=json)


def frames(
    library: LibraryArgument,
    video: Annotated[str, typer.Option(help="The video: its id (or the first digits), title or file.")],
    at: Annotated[list[float] | None, typer.Option(help="A time in seconds; may be repeated.")] = None,
    from_s: FromOption = None,
    to_s: ToOption = None,
    every: Annotated[
        float | None, typer.Option(help="Between --from and --to, one frame every so many seconds. Default: all.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the JPEGs.")] = Path("frames"),
    mode: Annotated[str, typer.Option(help="nearest, exact, or shown (the frame on screen at that time).")] = "nearest",
    json: JsonOption = False,
) -> None:
    """Write stored frames as JPEG files: at given times, or those of a part of the video."""
    from index.library import Library
    from jobs.console.output import show_frames
    from jobs.errors import UsageError

    if mode not in ("nearest", "exact", "shown"):
        raise UsageError(f"got --mode {mode}; it is nearest, exact or shown")
    in_part = from_s is not None or to_s is not None or every is not None
    if bool(at) == in_part:
        raise UsageError("got " + ("both" if at else "neither") + " --at and --from, --to or --every; give one of them")
    opened = Library.open(library)
    row = opened.video(video)
    times_s = at or _times(opened, row, from_s, to_s, every)
    show_frames(row, _stored(opened, row, times_s, "shown" if in_part else mode), out, as_json=json)


def _times(
    library: Library, row: VideoRow, from_s: float | None, to_s: float | None, every_s: float | None
) -> list[float]:
    """Times in a part of a video from its start on: `every_s` apart, or those of all stored frames."""
    from jobs.errors import UsageError

    if any(time_s is not None and isnan(time_s) for time_s in (from_s, to_s)):
        raise UsageError("got a time that is not a number; without --from and --to the whole video is taken")
    start_s = row.start_s if from_s is None else max(row.start_s, from_s)
    end_s = row.end_s if to_s is None else min(row.end_s, to_s)
    if not start_s < end_s:
        raise UsageError(
            f"got times from {start_s:g} to {end_s:g} s of {row.title}, which has frames from {row.start_s:g} to "
            f"{row.end_s:g} s; the end must be after the start and within the video"
        )
    if every_s is not None and not every_s > 0:
        raise UsageError(f"got --every {every_s:g}; give more than 0 seconds")
    import numpy as np

    stored_s = library.vectors(row.video_id).time_s
    if every_s is None or every_s <= np.diff(stored_s).min(initial=np.inf):  # an interval this short meets every frame
        return [start_s, *(time_s for time_s in stored_s.tolist() if start_s < time_s < end_s)]
    # arange may include the end, which is outside
    return [time_s for time_s in np.arange(start_s, end_s, every_s).tolist() if time_s < end_s]


def _stored(library: Library, row: VideoRow, times_s: Sequence[float], mode: str) -> Iterator[StoredFrame]:
    """Frames at some times, each once, `BATCH` in memory at a time."""
    written: set[int] = set()
    for first in range(0, len(times_s), BATCH):
        for frame in library.frames_at(row.video_id, times_s[first : first + BATCH], mode=mode):
            if frame.frame_no not in written:
                written.add(frame.frame_no)
                yield frame
