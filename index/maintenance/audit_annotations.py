"""Check the rows of optional stages: each row belongs to a complete addition, and each addition has its rows.

One scan a table; readers never do this.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from index.library import Library
from index.store.database import Tables, space_tables
from index.store.filters import Filter, all_of, equal, fits_one_filter, one_of
from index.store.late_tables import present
from index.store.schema import ADDED_DIGEST, SENTENCES_PREFIX, STAGE_TABLES, STAGES, VECTORS_PREFIX
from index.videos.digests import as_text, digests_by_video, read_batches, row_hashes
from index.videos.visibility import complete_videos

Key = tuple[str, str]
"""Video id and model."""


@dataclass(frozen=True, slots=True)
class AddedRows:
    """Videos for which a model's rows of one stage are not as they should be; ids are sorted."""

    stage: str
    model: str
    video_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AddedAudit:
    """Problems of additions, by stage and model."""

    leftovers: tuple[AddedRows, ...] = ()
    """Rows of no complete addition, or additions to videos that are gone: interrupted runs left them."""
    broken: tuple[AddedRows, ...] = ()
    """Complete additions with other rows, or other values in them, than were added: discard and add them again."""
    unchecked: int = 0
    """Complete additions that were made before there were digests: altered values of theirs are not found."""


def audit_added(library: Library, stages: Sequence[str] = STAGES, deep: bool = False) -> AddedAudit:
    """Check the additions of some stages; values of vectors only where `deep`.

    Additions that seem broken are checked a second time, since a run at work may have changed them meanwhile.
    """
    leftovers: list[AddedRows] = []
    broken: list[AddedRows] = []
    unchecked = 0
    for stage in stages:
        left, wrong, undigested = _check(library, stage, deep, None)
        unchecked += undigested
        if wrong:
            ids = fits_one_filter(sorted({video_id for video_id, _ in wrong}))
            wrong &= _check(library, stage, deep, ids)[1]
        leftovers += _by_model(stage, left)
        broken += _by_model(stage, wrong)
    return AddedAudit(tuple(leftovers), tuple(broken), unchecked)


def discard_added(library: Library, found: Iterable[AddedRows]) -> None:
    """Delete these additions and their rows."""
    for each in found:
        library.additions.discard(each.stage, each.model, *each.video_ids)


def _check(library: Library, stage: str, deep: bool, video_ids: Sequence[str] | None) -> tuple[set[Key], set[Key], int]:
    """Find leftovers and broken additions, and count those without a digest.

    Additions are read first: their rows are older than they are.
    """
    tables = library.tables
    chosen = [] if video_ids is None else [one_of("video_id", video_ids)]
    rows = tables.rows("additions", all_of([*chosen, equal("stage", stage)]))
    keys = [(row["video_id"], row["model"]) for row in rows.select(["video_id", "model"]).to_pylist()]
    promised = dict(zip(keys, rows.to_pylist(), strict=True))
    hashes = dict(zip(keys, row_hashes(rows), strict=True))
    digested = {key for key, row in promised.items() if row.get(ADDED_DIGEST) is not None}
    reads_values = bool(digested) and (deep or stage in STAGE_TABLES)
    held, digests = _held(library, stage, chosen, reads_values)
    gone = {video_id for video_id, _ in promised} - complete_videos(tables, video_ids).keys()
    stray = {key for key in promised if key[0] in gone}
    broken = {key for key, row in promised.items() if held[key] != row["rows"]}
    if reads_values:
        broken |= {key for key in digested if promised[key][ADDED_DIGEST] != as_text(digests[key] + hashes[key])}
    return (held.keys() - promised.keys()) | stray, broken - stray, len(promised) - len(digested)


def held_rows(library: Library, stage: str) -> Counter[Key]:
    """Count the rows of a stage's tables, by video and model."""
    return _held(library, stage, (), reads_values=False)[0]


def _held(
    library: Library, stage: str, chosen: Sequence[Filter], reads_values: bool
) -> tuple[Counter[Key], Counter[Key]]:
    """Count the rows of a stage's tables, and compute their digests on request, by video and model."""
    tables = library.tables
    held: Counter[Key] = Counter()
    digests: Counter[Key] = Counter()
    if stage not in STAGE_TABLES:
        prefix = SENTENCES_PREFIX if stage == "sentences" else VECTORS_PREFIX
        spaces = space_tables(tables, prefix)
        others = {name: space.digest for name, space in spaces.items() if name != library.vectors_table}
        for name, digest in others.items():
            for batch in _batches(tables, name, chosen, ["video_id"], reads_values):
                counts = batch.column("video_id").value_counts().to_pylist()
                held.update({(each["values"], digest): each["counts"] for each in counts})
                if reads_values:
                    of_videos = digests_by_video(batch)
                    digests.update({(video_id, digest): value for video_id, value in of_videos.items()})
        return held, digests
    for name in present(tables, [STAGE_TABLES[stage]]):
        for batch in _batches(tables, name, chosen, ["video_id", "model"], reads_values):
            counts = pa.Table.from_batches([batch]).group_by(["video_id", "model"]).aggregate([([], "count_all")])
            for row in counts.to_pylist():
                if row["model"] is not None:  # subtitles have none
                    held[row["video_id"], row["model"]] += row["count_all"]
            if reads_values:
                keys = zip(*(batch.column(key).to_pylist() for key in ("video_id", "model")), strict=True)
                for key, row_hash in zip(keys, row_hashes(batch), strict=True):
                    digests[key] += row_hash
    return held, digests


def _batches(
    tables: Tables, name: str, where: Sequence[Filter], keys: Sequence[str], reads_values: bool
) -> Iterator[pa.RecordBatch]:
    return read_batches(tables, name, where) if reads_values else tables.batches(name, all_of(where), keys)


def _by_model(stage: str, keys: Iterable[Key]) -> list[AddedRows]:
    ids: defaultdict[str, list[str]] = defaultdict(list)
    for video_id, model in keys:
        ids[model].append(video_id)
    return [AddedRows(stage, model, tuple(sorted(ids[model]))) for model in sorted(ids)]
