"""Digests of rows: numbers by which a check finds values that changed on the disk, for Lance keeps no checksum.

A video has one for its rows in each table that ingest fills, an addition one for its rows; rows that belong to
neither have one each (`ROW_DIGEST`). They hold the columns that kinodex made: somebody may add others to any table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from hashlib import blake2b
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kinodex.index.errors import LibraryDamaged
from kinodex.index.store.schema import ADDED_DIGEST, ROW_DIGEST, VIDEO_DIGESTS, own_columns
from kinodex.index.stored_json import read_object

HASH_BYTES = 16
LEFT_OUT = frozenset({"jpeg", VIDEO_DIGESTS, ADDED_DIGEST, ROW_DIGEST, "ingested_at", "added_at"})
"""Columns that no digest holds: pictures, digests, and times of writing, in which two runs differ."""
OWN_ROW = "videos"
"""Name of the digest of a video's row in `videos` itself."""
Digests = Mapping[str, Mapping[str, int]]
"""Digests by table and video."""


def row_hashes(rows: pa.Table | pa.RecordBatch) -> list[int]:
    """Compute the hash of each row."""
    names = sorted(set(rows.schema.names) - LEFT_OUT)
    chosen = rows.select(names)
    batches = chosen.combine_chunks().to_batches() if isinstance(chosen, pa.Table) else [chosen]
    columns = [_labelled(name, [each for batch in batches for each in _values(batch.column(name))]) for name in names]
    return [
        int.from_bytes(blake2b(b"".join(values), digest_size=HASH_BYTES).digest())
        for values in zip(*columns, strict=True)
    ]


def own_hashes(schema: pa.Schema, rows: pa.Table | pa.RecordBatch) -> list[int]:
    """Compute the hash of each row of a table with this schema, without columns that somebody added to it."""
    return row_hashes(rows.select([name for name in own_columns(schema) if name in rows.schema.names]))


def digests_by_video(rows: pa.Table | pa.RecordBatch) -> Counter[str]:
    """Sum the hashes of the rows by video."""
    found: Counter[str] = Counter()
    for video_id, row_hash in zip(rows.column("video_id").to_pylist(), row_hashes(rows), strict=True):
        found[video_id] += row_hash
    return found


def read_video_digests(text: str | bytes) -> dict[str, Any]:
    """Read the digests in the row of a video; none where they are damaged themselves."""
    try:
        return read_object(text, "the digests of a video")
    except LibraryDamaged:
        return {}


def as_text(digest: int) -> str:
    return f"{digest % (1 << 8 * HASH_BYTES):0{2 * HASH_BYTES}x}"


def _labelled(name: str, values: Iterable[bytes | None]) -> list[bytes]:
    label = name.encode() + b"\0"
    return [b"" if value is None else label + value for value in values]


def _values(array: pa.Array) -> list[bytes | None]:
    """Write each value as bytes; None for a null."""
    if not array.null_count:
        return list(_bytes(array))
    present = iter(_bytes(array.drop_null()))
    return [next(present) if is_there else None for is_there in array.is_valid().to_pylist()]


def _bytes(array: pa.Array) -> Iterable[bytes]:
    """Write the values of an array without nulls as bytes, of which none begins another."""
    kind = array.type
    if pa.types.is_struct(kind):
        fields = [_labelled(field.name, _values(part)) for field, part in zip(kind, array.flatten(), strict=True)]
        return [b"".join(parts) for parts in zip(*fields, strict=True)]
    if pa.types.is_list(kind):
        parts = iter(_values(array.flatten()))
        counts = pc.list_value_length(array).to_pylist()
        return [count.to_bytes(4) + b"".join(part or b"" for part in islice(parts, count)) for count in counts]
    if pa.types.is_fixed_size_list(kind):
        return _cut(array.flatten(), kind.list_size)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):  # damaged letters may be no UTF-8
        values = array.cast(pa.binary()).to_pylist()
        return [len(value).to_bytes(8) + value for value in values]
    return _cut(array.cast(pa.int64()) if pa.types.is_timestamp(kind) else array, 1)


def _cut(numbers: pa.Array, size: int) -> list[bytes]:
    """Cut numbers into the bytes of this many each, bit by bit as they are stored."""
    values = np.ascontiguousarray(numbers.to_numpy(zero_copy_only=False))
    content, step = values.tobytes(), size * values.itemsize
    return [content[first : first + step] for first in range(0, len(content), step)]


def with_row_digests(rows: pa.Table, altered: Collection[str] = ()) -> pa.Table:
    """Give each row its digest, in the column for it; those of altered rows stay, which still show it."""
    pairs = zip(texts(rows[ROW_DIGEST]), own_hashes(rows.schema, rows), strict=True)
    digests = pa.array([held if held in altered else as_text(row_hash) for held, row_hash in pairs], pa.string())
    return rows.set_column(rows.schema.get_field_index(ROW_DIGEST), rows.schema.field(ROW_DIGEST), digests)


def are_altered(rows: pa.Table | pa.RecordBatch) -> list[bool]:
    """Say for each row, all of whose columns are there, if it is not as it was written."""
    pairs = zip(texts(rows[ROW_DIGEST]), own_hashes(rows.schema, rows), strict=True)
    return [digest is not None and digest != as_text(row_hash) for digest, row_hash in pairs]


def altered_digests(rows: pa.Table | pa.RecordBatch) -> set[str]:
    """List the digests of altered rows; none where the table has no column for them."""
    if ROW_DIGEST not in rows.schema.names:
        return set()
    pairs = zip(texts(rows[ROW_DIGEST]), are_altered(rows), strict=True)
    return {digest for digest, is_altered in pairs if is_altered and digest is not None}


def texts(column: pa.Array | pa.ChunkedArray) -> list[str | None]:
    """Read texts that damage may have left without UTF-8."""
    values = column.cast(pa.binary()).to_pylist()
    return [None if value is None else value.decode(errors="replace") for value in values]
