"""Frames of moments, or of one video at times, as pictures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kinodex.index.durations import counted
from kinodex.index.terminal_text import visible
from kinodex.jobs.errors import UsageError
from kinodex.output import print_json, say

if TYPE_CHECKING:
    from kinodex.cli.export.options import Order
    from kinodex.index.library import Library
    from kinodex.index.rows import StoredFrame, VideoRow

FRAMES_AT_ONCE = 200
"""Frames in memory at a time."""


def write_frames(order: Order) -> None:
    from kinodex.jobs.export.frames import export_frames

    if order.kind.at or order.kind.every is not None:
        _write_stills(order)
        return
    rows = export_frames(order.library, order.chosen(), order.folder, order.kind.most)
    if order.kind.json:
        print_json(rows)
    else:
        say(f"{counted(len({row['file'] for row in rows}), 'frame')} in {visible(order.to)}")


def _write_stills(order: Order) -> None:
    """Write the frames of one video at given times."""
    options, named, from_s, to_s = order.kind, order.moments.video or [], order.moments.from_s, order.moments.to_s
    at, every_s, mode = options.at or [], options.every, options.mode
    if len(named) != 1:
        raise UsageError("got --at or --every without one video; name it with --video")
    if mode not in ("nearest", "exact", "shown"):
        raise UsageError(f"got --mode {mode}; it is nearest, exact or shown")
    if at and not from_s is to_s is every_s is None:
        raise UsageError("got both --at and --from, --to or --every; give one of them")
    library = order.library.where(order.moments.where)
    row = library.video(named[0])
    if every_s is not None:
        at, mode = _times(library, row, from_s, to_s, every_s), "shown"
    show_frames(row, _stored(library, row, at, mode), order.folder, as_json=options.json)


def _times(library: Library, row: VideoRow, from_s: float | None, to_s: float | None, every_s: float) -> list[float]:
    """Return the times of a part of a video that are `every_s` apart, its start first."""
    start_s = row.start_s if from_s is None else max(row.start_s, from_s)
    end_s = row.end_s if to_s is None else min(row.end_s, to_s)
    if not start_s < end_s:
        raise UsageError(
            f"got times from {start_s:g} to {end_s:g} s of {row.title}, which has frames from {row.start_s:g} to "
            f"{row.end_s:g} s; the end must be after the start and within the video"
        )
    if not every_s > 0:
        raise UsageError(f"got --every {every_s:g}; give more than 0 seconds")
    import numpy as np

    _, stored_s = library.frame_times(row.video_id)
    if every_s <= np.diff(stored_s).min(initial=np.inf):  # an interval this short meets every frame
        return [start_s, *(time_s for time_s in stored_s.tolist() if start_s < time_s < end_s)]
    # arange may include the end, which is outside
    return [time_s for time_s in np.arange(start_s, end_s, every_s).tolist() if time_s < end_s]


def _stored(library: Library, row: VideoRow, times_s: Sequence[float], mode: str) -> Iterator[StoredFrame]:
    """Yield the frames at some times, each once, `FRAMES_AT_ONCE` in memory at a time."""
    written: set[int] = set()
    for first in range(0, len(times_s), FRAMES_AT_ONCE):
        for frame in library.frames_at(row.video_id, times_s[first : first + FRAMES_AT_ONCE], mode=mode):
            if frame.frame_no not in written:
                written.add(frame.frame_no)
                yield frame


def show_frames(row: VideoRow, frames: Iterable[StoredFrame], out: Path, as_json: bool) -> None:
    written = []
    try:
        out.mkdir(parents=True, exist_ok=True)
        for frame in frames:
            path = out / f"{row.video_id[:12]}_{frame.time_s:010.3f}.jpg"
            path.write_bytes(frame.jpeg)
            written.append({"path": str(path), "video_id": row.video_id, "time_s": frame.time_s})
    except OSError as error:
        raise UsageError(
            f"cannot write frames to {out}: {error.strerror}; give --out a folder you may write"
        ) from error
    if as_json:
        print_json(written)
        return
    for each in written:
        say(f"{each['path']}  {each['time_s']:.3f} s")
