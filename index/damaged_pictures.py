"""Check of the stored pictures of a library: each still has the bytes that were written."""

from __future__ import annotations

import zlib

from kinodex.index.library import Library
from kinodex.index.store.schema import CHECKSUM

PICTURES_AT_ONCE = 256
JPEG_START, JPEG_END = b"\xff\xd8", b"\xff\xd9"
"""Markers SOI and EOI (ITU-T T.81, B.1.1.3)."""


def damaged_pictures(library: Library) -> tuple[str, ...]:
    """Find videos with damaged pictures by their checksums; without one, by how a JPEG begins and ends."""
    columns = ["video_id", "jpeg", CHECKSUM]
    damaged: set[str] = set()
    for batch in library.tables.batches("frames", None, columns, rows=PICTURES_AT_ONCE):
        checksums = batch[CHECKSUM].to_pylist()
        ids, jpegs = batch["video_id"].to_pylist(), batch["jpeg"].to_pylist()
        for video_id, jpeg, checksum in zip(ids, jpegs, checksums, strict=True):
            begins_and_ends = jpeg.startswith(JPEG_START) and jpeg.endswith(JPEG_END)
            if not (begins_and_ends if checksum is None else zlib.crc32(jpeg) == checksum):
                damaged.add(video_id)
    return tuple(sorted(damaged))
