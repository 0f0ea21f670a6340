"""Stored frames of a video: their numbers and times, and their pictures by number or by time.

Nobody gets a picture or a vector that was damaged on the disk: whoever reads some here or elsewhere checks them.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from index.clock import moved, moved_s
from index.errors import DamagedRows, QueryError, TimeOutside
from index.rows import StoredFrame, VideoRow
from index.store.database import Tables
from index.store.filters import equal, of_frames
from index.store.schema import CHECKSUM, LAST_FRAME_NO

EXACT_S = 1e-6
HALF_MAGNITUDE, HALF_INFINITE = np.uint16(0x7FFF), 0x7C00
"""Bits of a float16 without its sign; from those of infinity on it is no finite number."""
COLUMNS = ["video_id", "frame_no", "time_s", "width_px", "height_px", "jpeg"]


def frame_times(tables: Tables, video: VideoRow) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Read the numbers and times of a video's frames in time order, each once; empty where it has none."""
    rows = tables.rows("frames", equal("video_id", video.video_id), ["frame_no", "time_s"])
    frame_no, first = np.unique(rows["frame_no"].to_numpy(), return_index=True)
    return frame_no, moved_s(rows["time_s"].to_numpy()[first], -video.zero_s)


def read_frames(tables: Tables, video: VideoRow, frame_nos: Sequence[int]) -> list[StoredFrame]:
    """Read frames with their pictures, in the order given; raises TimeOutside for an unknown number, or DamagedRows."""
    numbers = [int(number) for number in frame_nos]
    if not numbers:
        return []
    possible = [number for number in numbers if 0 <= number <= LAST_FRAME_NO]
    columns = with_checksum(COLUMNS, tables.schema("frames"))
    table = tables.rows("frames", of_frames(video.video_id, possible), columns)
    check_pictures(table, tables.uri)
    stored = {row["frame_no"]: StoredFrame(**moved(row, -video.zero_s)) for row in table.select(COLUMNS).to_pylist()}
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


def with_checksum(columns: Sequence[str], schema: pa.Schema) -> list[str]:
    """Add the column that `check_pictures` needs, where pictures are read and the library has it."""
    return [*columns, *([CHECKSUM] if "jpeg" in columns and CHECKSUM in schema.names else [])]


def check_pictures(rows: pa.Table, uri: str) -> None:
    """Raise DamagedRows for a picture with another CRC-32 than it was written with, where the library has those."""
    if CHECKSUM not in rows.schema.names:
        return
    pairs = zip(rows["jpeg"], rows[CHECKSUM].to_pylist(), strict=True)
    for number, (jpeg, checksum) in enumerate(pairs):
        if checksum is not None and zlib.crc32(jpeg.as_buffer()) != checksum:
            row = rows.select(["video_id", "frame_no"]).slice(number, 1).to_pylist()[0]
            raise damaged_rows(f"the picture of frame {row['frame_no']}", row["video_id"], uri)


def check_vectors(rows: pa.Table | pa.RecordBatch, uri: str) -> None:
    """Raise DamagedRows for a vector with numbers that are NaN or infinite, which compares with nothing."""
    damaged = not_finite(rows)
    if damaged:
        raise damaged_rows("a vector", min(damaged), uri)


def not_finite(rows: pa.Table | pa.RecordBatch) -> set[str]:
    """List the videos with a vector, float16, that has numbers which are NaN or infinite."""
    found: set[str] = set()
    for batch in rows.to_batches() if isinstance(rows, pa.Table) else [rows]:
        batch = batch.filter(batch["vector"].is_valid()) if batch["vector"].null_count else batch
        bits = batch["vector"].flatten().to_numpy().view(np.uint16) & HALF_MAGNITUDE
        if bits.size and bits.max() >= HALF_INFINITE:
            wrong = (bits.reshape(batch.num_rows, -1) >= HALF_INFINITE).any(axis=1)
            found.update(batch["video_id"].filter(pa.array(wrong)).to_pylist())
    return found


def damaged_rows(what: str, video_id: str, uri: str) -> DamagedRows:
    """Make the error about something of a video that is not as it was written."""
    return DamagedRows(
        f"{what} of video {video_id} in {uri} is not as it was written; `kinodex maintain {uri} --check --deep` names "
        "every such video, and with --discard-broken instead of --check deletes them: then ingest them again"
    )


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
