"""Checks of what is read: nobody gets a picture or a vector that was damaged on the disk."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from kinodex.index.errors import DamagedRows
from kinodex.index.store.schema import CHECKSUM

HALF_MAGNITUDE, HALF_INFINITE = np.uint16(0x7FFF), 0x7C00
"""Bits of a float16 without its sign; from those of infinity on it is no finite number."""


def with_checksum(columns: Sequence[str]) -> list[str]:
    """Add the column that `check_pictures` needs, where pictures are read."""
    return [*columns, *([CHECKSUM] if "jpeg" in columns else [])]


def check_pictures(rows: pa.Table, uri: str) -> None:
    """Raise DamagedRows for a picture with another CRC-32 than it was written with."""
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
