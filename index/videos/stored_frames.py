"""Stored frames of a video: their numbers and times, and their pictures by number or by time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from index.clock import moved, moved_s
from index.errors import QueryError, TimeOutside
from index.rows import StoredFrame, VideoRow
from index.store.database import Tables
from index.store.filters import equal, of_frames
from index.store.schema import FRAME_NO_BITS

EXACT_S = 1e-6
COLUMNS = ["video_id", "frame_no", "time_s", "width_px", "height_px", "jpeg"]


def frame_times(tables: Tables, video: VideoRow) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Read the numbers and times of a video's frames in time order, each once; empty where it has none."""
    rows = tables.rows("frames", equal("video_id", video.video_id), ["frame_no", "time_s"])
    frame_no, first = np.unique(rows["frame_no"].to_numpy(), return_index=True)
    return frame_no, moved_s(rows["time_s"].to_numpy()[first], -video.zero_s)


def read_frames(tables: Tables, video: VideoRow, frame_nos: Sequence[int]) -> list[StoredFrame]:
    """Read frames with their pictures, in the order given; raises TimeOutside for an unknown number."""
    numbers = [int(number) for number in frame_nos]
    if not numbers:
        return []
    possible = [number for number in numbers if 0 <= number < 1 << FRAME_NO_BITS]
    rows = tables.rows("frames", of_frames(video.video_id, possible), COLUMNS).to_pylist()
    stored = {row["frame_no"]: StoredFrame(**moved(row, -video.zero_s)) for row in rows}
    for number in numbers:
        if number not in stored:
            raise TimeOutside(f"got frame {number} of {video.title}, which has no such frame; ask for it by time")
    return [stored[number] for number in numbers]


def read_frames_at(tables: Tables, video: VideoRow, times_s: Sequence[float], mode: str) -> list[StoredFrame]:
    """Read one frame for each time; see `LibraryReader.frames_at`. Raises TimeOutside, or QueryError for the mode."""
    for time_s in times_s:
        if not video.start_s <= time_s < video.end_s:
            allowed = f"[{video.start_s:.3f}, {video.end_s:.3f})"
            raise TimeOutside(f"got {time_s:.3f} s of {video.title}, which covers {allowed} s; give a time in there")
    if times_s and not video.frames:
        raise TimeOutside(f"got {times_s[0]:.3f} s of {video.title}, which was imported as text and has no frames")
    rows = tables.rows("frames", equal("video_id", video.video_id), ["frame_no", "time_s"]).sort_by("time_s")
    numbers, stored_s = rows["frame_no"].to_numpy(), moved_s(rows["time_s"].to_numpy(), -video.zero_s)
    return read_frames(tables, video, [int(numbers[_position(stored_s, t, mode, video)]) for t in times_s])


def _position(stored_s: NDArray[np.float64], time_s: float, mode: str, video: VideoRow) -> int:
    """Find which of the rising `stored_s` stands for `time_s`; of two equally near ones the earlier."""
    nearest = int(np.argmin(np.abs(stored_s - time_s)))
    if mode == "nearest":
        return nearest
    if mode == "shown":
        return max(int(np.searchsorted(stored_s, time_s + EXACT_S, side="right")) - 1, 0)
    if mode != "exact":
        raise QueryError(f"got mode {mode!r}; it is nearest, exact or shown")
    if abs(stored_s[nearest] - time_s) > EXACT_S:
        raise TimeOutside(
            f"got {time_s:.6f} s of {video.title}, where no frame is stored; the nearest is at "
            f"{stored_s[nearest]:.6f} s: ask for that, or with mode nearest"
        )
    return nearest
