"""Check of the rows of optional stages: each row belongs to a complete addition, and each addition has its rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from kinodex.index.annotations.lines import grouped
from kinodex.index.library import Library
from kinodex.index.store.database import Tables
from kinodex.index.store.digests import as_text, digests_by_video, own_hashes, row_hashes
from kinodex.index.store.filters import Filter, all_of, equal, fits_one_filter, one_of
from kinodex.index.store.held_tables import own_tables, present
from kinodex.index.store.schema import ADDED_DIGEST, SHARED_STAGES, STAGES
from kinodex.index.store.stored_digests import read_batches
from kinodex.index.videos.visibility import complete_videos

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
    """Complete additions without digests, as a repair writes them: altered values of theirs are not found."""


def audit_added(library: Library, stages: Sequence[str] = STAGES, deep: bool = False) -> AddedAudit:
    """Check the additions of some stages, vectors only where `deep`; what seems broken is checked a second time."""
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
    """Find leftovers and broken additions, of additions read before their rows, and count those without a digest."""
    tables = library.tables
    chosen = [] if video_ids is None else [one_of("video_id", video_ids)]
    rows = tables.rows("additions", all_of([*chosen, equal("stage", stage)]))
    keys = [(row["video_id"], row["model"]) for row in rows.select(["video_id", "model"]).to_pylist()]
    promised = dict(zip(keys, rows.to_pylist(), strict=True))
    hashes = dict(zip(keys, own_hashes(tables.schema("additions"), rows), strict=True))
    digested = {key for key, row in promised.items() if row.get(ADDED_DIGEST) is not None}
    reads_values = bool(digested) and (deep or stage in SHARED_STAGES)
    held, digests = _held(library, stage, chosen, reads_values)
    gone = {video_id for video_id, _ in promised} - complete_videos(tables, video_ids, as_stored=True).keys()
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
    if stage not in SHARED_STAGES:
        for digest, name in own_tables(tables, stage).items():
            if name == library.own_vectors:
                continue
            for batch in _batches(tables, name, chosen, ["video_id"], reads_values):
                counts = batch.column("video_id").value_counts().to_pylist()
                held.update({(each["values"], digest): each["counts"] for each in counts})
                if reads_values:
                    of_videos = digests_by_video(batch)
                    digests.update({(video_id, digest): value for video_id, value in of_videos.items()})
        return held, digests
    for name in present(tables, [stage]):
        for batch in _batches(tables, name, chosen, ["video_id", "model"], reads_values):
            for row in grouped(batch, ["video_id", "model"]):
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
