"""Lines of speech that were written twice: they have no number, so where each of a video's stands as often, these are
copies of the same.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import pyarrow as pa

from kinodex.index.rows import VideoRow
from kinodex.index.store.database import Tables
from kinodex.index.store.digests import LEFT_OUT, row_hashes
from kinodex.index.store.filters import all_of, equal
from kinodex.index.store.schema import own_columns
from kinodex.index.store.stored_digests import read_batches
from kinodex.index.videos.row_counts import Counts, ingested_only


def lines_once(tables: Tables, videos: Sequence[VideoRow], held: Counts) -> Counts:
    """Count the lines of videos without copies."""
    times = {row.video_id: _copies(tables, row, held.rows.get(row.video_id, 0)) for row in videos}
    once = {id_: count // times.get(id_, 1) for id_, count in held.rows.items()}
    return Counts(once, once)


def _copies(tables: Tables, row: VideoRow, held: int) -> int:
    """Say how often each line of a video stands; 1 where not all stand as often as their number says."""
    if not row.speech_lines or held <= row.speech_lines or held % row.speech_lines:
        return 1
    times = held // row.speech_lines
    of_video = [equal("video_id", row.video_id), *ingested_only("speech")]
    counts = Counter(each for batch in read_batches(tables, "speech", of_video) for each in row_hashes(batch))
    return times if all(count % times == 0 for count in counts.values()) else 1


def delete_second_lines(tables: Tables, row: VideoRow, held: int) -> None:
    times = _copies(tables, row, held)
    if times == 1:
        return
    columns = [name for name in own_columns(tables.schema("speech")) if name not in LEFT_OUT]

    def others(rows: pa.Table) -> list[int]:
        places: dict[int, list[int]] = defaultdict(list)
        for row_id, row_hash in zip(rows["_rowid"].to_pylist(), row_hashes(rows.select(columns)), strict=True):
            places[row_hash].append(row_id)
        return [row_id for same in places.values() for row_id in same[len(same) // times :]]

    tables.delete_chosen("speech", columns, all_of([equal("video_id", row.video_id), *ingested_only("speech")]), others)
