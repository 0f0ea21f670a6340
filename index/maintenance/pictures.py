"""Check the stored pictures of a library: each still has the bytes that were written."""

from __future__ import annotations

import zlib

from index.library import Library
from index.store.schema import CHECKSUM

PICTURES_AT_ONCE = 256
JPEG_START, JPEG_END = b"\xff\xd8", b"\xff\xd9"
"""Markers SOI and EOI (ITU-T T.81, B.1.1.3)."""


def damaged_pictures(library: Library) -> tuple[str, ...]:
    """Find the videos with pictures that were damaged on the disk, sorted by id; reads every picture.

    A picture of a library that was made before there were checksums counts as damaged if it does not begin and
    end as a JPEG does.
    """
    known = CHECKSUM in library.tables["frames"].schema.names
    columns = ["video_id", "jpeg", *([CHECKSUM] if known else [])]
    damaged: set[str] = set()
    for batch in library.tables.batches("frames", None, columns, rows=PICTURES_AT_ONCE):
        checksums = batch[CHECKSUM].to_pylist() if known else [None] * batch.num_rows
        for video_id, jpeg, checksum in zip(
            batch["video_id"].to_pylist(), batch["jpeg"].to_pylist(), checksums, strict=True
        ):
            if not _is_sound(jpeg, checksum):
                damaged.add(video_id)
    return tuple(sorted(damaged))


def _is_sound(jpeg: bytes, checksum: int | None) -> bool:
    if checksum is None:
        return jpeg.startswith(JPEG_START) and jpeg.endswith(JPEG_END)
    return zlib.crc32(jpeg) == checksum
