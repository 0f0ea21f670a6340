"""Sizes, fragments and indexes of a library's tables, for people and for maintenance."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kinodex.index.store.database import Tables, data_bytes
from kinodex.index.store.places import is_local
from kinodex.index.store.storage_errors import storage_errors


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
    names = sorted(tables.whole_names())
    with storage_errors(tables.uri):
        return tuple(_facts(tables, name) for name in names)


def _facts(tables: Tables, name: str) -> TableFacts:
    table = tables[name]
    rows = table.count_rows()
    indexes = [
        IndexFacts(each.name, tuple(each.field_names), each.index_type, rows - each.num_rows_indexed)
        for each in table.describe_indices()
    ]
    folder = Path(tables.uri) / f"{name}.lance"
    return TableFacts(
        name=name,
        rows=rows,
        data_bytes=data_bytes(table),
        disk_bytes=_disk_bytes(folder) if is_local(tables.uri) else None,
        fragments=len(table.get_fragments()),
        versions=len(table.version_refs()),
        indexes=tuple(indexes),
    )


def _disk_bytes(folder: Path) -> int:
    """Sum the bytes of all files, without those that a run at work deletes meanwhile."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):
            total += path.stat().st_size if path.is_file() else 0
    return total
