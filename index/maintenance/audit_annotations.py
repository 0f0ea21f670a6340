"""Check the rows of optional stages: each row belongs to a complete addition, and each addition has its rows.

One scan of ids and models a table; readers never do this.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from index.library import Library
from index.store.database import space_tables
from index.store.filters import Filter, all_of, equal, fits_one_filter, one_of
from index.store.late_tables import present
from index.store.schema import SENTENCES_PREFIX, STAGE_TABLES, STAGES, VECTORS_PREFIX
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
    """Complete additions with other rows than they should have: discard them and add them again."""


def audit_added(library: Library, stages: Sequence[str] = STAGES) -> AddedAudit:
    """Check the additions of some stages.

    Additions that seem broken are checked a second time, since a run at work may have changed them meanwhile.
    """
    leftovers: list[AddedRows] = []
    broken: list[AddedRows] = []
    for stage in stages:
        left, wrong = _check(library, stage, None)
        if wrong:
            _, again = _check(library, stage, fits_one_filter(sorted({video_id for video_id, _ in wrong})))
            wrong &= again
        leftovers += _by_model(stage, left)
        broken += _by_model(stage, wrong)
    return AddedAudit(tuple(leftovers), tuple(broken))


def discard_added(library: Library, found: Iterable[AddedRows]) -> None:
    """Delete these additions and their rows."""
    for each in found:
        library.additions.discard(each.stage, each.model, *each.video_ids)


def _check(library: Library, stage: str, video_ids: Sequence[str] | None) -> tuple[set[Key], set[Key]]:
    """Find leftovers and broken additions. Additions are read first: their rows are older than they are."""
    tables = library.tables
    chosen = [] if video_ids is None else [one_of("video_id", video_ids)]
    rows = tables.rows("additions", all_of([*chosen, equal("stage", stage)]), ["video_id", "model", "rows"])
    promised = {(row["video_id"], row["model"]): row["rows"] for row in rows.to_pylist()}
    held = held_rows(library, stage, chosen)
    gone = {video_id for video_id, _ in promised} - complete_videos(tables, video_ids).keys()
    stray = {key for key in promised if key[0] in gone}
    broken = {key for key, count in promised.items() if held[key] != count}
    return (held.keys() - promised.keys()) | stray, broken - stray


def held_rows(library: Library, stage: str, chosen: Sequence[Filter] = ()) -> Counter[Key]:
    """Count the rows of a stage's tables, by video and model."""
    tables = library.tables
    held: Counter[Key] = Counter()
    if stage not in STAGE_TABLES:
        prefix = SENTENCES_PREFIX if stage == "sentences" else VECTORS_PREFIX
        spaces = space_tables(tables, prefix)
        others = {name: space.digest for name, space in spaces.items() if name != library.vectors_table}
        for name, digest in others.items():
            for batch in tables.batches(name, all_of(chosen), ["video_id"]):
                counts = batch.column("video_id").value_counts().to_pylist()
                held.update({(each["values"], digest): each["counts"] for each in counts})
        return held
    for name in present(tables, [STAGE_TABLES[stage]]):
        for batch in tables.batches(name, all_of(chosen), ["video_id", "model"]):
            counts = pa.Table.from_batches([batch]).group_by(["video_id", "model"]).aggregate([([], "count_all")])
            for row in counts.to_pylist():
                if row["model"] is not None:  # subtitles have none
                    held[row["video_id"], row["model"]] += row["count_all"]
    return held


def _by_model(stage: str, keys: Iterable[Key]) -> list[AddedRows]:
    ids: defaultdict[str, list[str]] = defaultdict(list)
    for video_id, model in keys:
        ids[model].append(video_id)
    return [AddedRows(stage, model, tuple(sorted(ids[model]))) for model in sorted(ids)]
