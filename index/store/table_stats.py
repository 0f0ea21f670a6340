"""Sizes, fragments and indexes of a library's tables, for people and for maintenance."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from index.store.database import Tables, is_local, storage_errors


@dataclass(frozen=True, slots=True)
class IndexFacts:
    """One index; `unindexed_rows` are new to it, and scanned."""

    name: str
    columns: tuple[str, ...]
    kind: str
    unindexed_rows: int


@dataclass(frozen=True, slots=True)
class TableFacts:
    """One table. `data_bytes` are of its newest state and its indexes, `disk_bytes` of all files, old ones too."""

    name: str
    rows: int
    data_bytes: int
    disk_bytes: int | None
    """None in an object store, where counting would list every object."""
    fragments: int
    versions: int
    indexes: tuple[IndexFacts, ...]


def table_facts(tables: Tables) -> tuple[TableFacts, ...]:
    """Measure all tables, by name."""
    names = sorted(name for name in tables.names() if tables.has(name))
    with storage_errors(tables.uri):
        return tuple(_facts(tables, name) for name in names)


def _facts(tables: Tables, name: str) -> TableFacts:
    table = tables[name]
    stats = table.stats()
    indexes = [
        IndexFacts(each.name, tuple(each.columns), str(each.index_type), each.num_unindexed_rows)
        for each in table.list_indices()
    ]
    folder = Path(tables.uri) / f"{name}.lance"
    return TableFacts(
        name=name,
        rows=int(stats["num_rows"]),
        data_bytes=int(stats["total_bytes"]),
        disk_bytes=_disk_bytes(folder) if is_local(tables.uri) else None,
        fragments=int(stats["fragment_stats"]["num_fragments"]),
        versions=len(table.list_versions()),
        indexes=tuple(indexes),
    )


def _disk_bytes(folder: Path) -> int:
    """Sum the bytes of all files, without those that a run at work deletes meanwhile."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:
            continue
    return total
