"""Comparison of the rows of complete videos with the digests that were written with them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kinodex.index.library import Library
from kinodex.index.store.digests import OWN_ROW, as_text, own_hashes, read_video_digests
from kinodex.index.store.filters import all_of, chunked, fits_one_filter, one_of
from kinodex.index.store.schema import VIDEO_DIGESTS
from kinodex.index.store.stored_digests import ROWS_AT_ONCE, read_digests
from kinodex.index.videos.damage import damaged_rows
from kinodex.index.videos.row_counts import expected_rows, ingested_only

LARGE = "frames"
"""Ingest's table that only a deep check reads, beside that of vectors."""


@dataclass(frozen=True, slots=True)
class AlteredRows:
    """Videos whose values in a table are not those that were written; ids are sorted."""

    table: str
    video_ids: tuple[str, ...]


def check_values(library: Library, video_ids: Sequence[str]) -> None:
    """Raise DamagedRows where one of these videos has altered values in the tables that ingest fills."""
    for ids in chunked(video_ids):
        for found in altered_rows(library, True, ids)[0]:
            raise damaged_rows(f"a value in {found.table}", found.video_ids[0], library.uri)


def altered_rows(
    library: Library, deep: bool = False, video_ids: Sequence[str] | None = None
) -> tuple[tuple[AlteredRows, ...], int]:
    """Find videos with altered values, of frames and vectors only where `deep`, and count those without digests."""
    altered, unchecked = _altered_in(library, deep, video_ids)
    suspects = sorted(set().union(*altered.values()))
    if suspects:
        again, _ = _altered_in(library, deep, fits_one_filter(suspects))
        altered = {name: ids & again.get(name, set()) for name, ids in altered.items()}
    found = (AlteredRows(name, tuple(sorted(ids))) for name, ids in sorted(altered.items()) if ids)
    return tuple(found), unchecked


def _altered_in(library: Library, deep: bool, video_ids: Sequence[str] | None) -> tuple[dict[str, set[str]], int]:
    """Read the rows of `videos` first: those of the other tables are older than they are."""
    tables = library.tables
    chosen = [] if video_ids is None else [one_of("video_id", video_ids)]
    filled = expected_rows(library.own_vectors)
    altered: dict[str, set[str]] = defaultdict(set)
    promised: dict[str, dict[str, Any]] = {}
    unchecked = 0
    for batch in tables.batches("videos", all_of(chosen), rows=ROWS_AT_ONCE, as_stored=True):
        ids = batch.column("video_id").to_pylist()
        texts = batch.column(VIDEO_DIGESTS).cast(pa.binary()).to_pylist()
        unchecked += sum(text is None for text in texts)
        for video_id, text, row_hash in zip(ids, texts, own_hashes(tables.schema("videos"), batch), strict=True):
            if text is not None:
                found = promised[video_id] = read_video_digests(text)
                if found.keys() != {*filled, OWN_ROW} or found[OWN_ROW] != as_text(row_hash):
                    altered[OWN_ROW].add(video_id)
    for name in filled:
        if promised and (deep or name not in (LARGE, library.own_vectors)):
            held = read_digests(tables, name, [*chosen, *ingested_only(name)])
            altered[name] |= {
                id_ for id_, digests in promised.items() if digests.get(name, as_text(held[id_])) != as_text(held[id_])
            }
    return altered, unchecked
