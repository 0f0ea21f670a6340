"""Bring a library of an earlier format, or of this one before some column was there, to what this version writes.

Each step is one commit that leaves the rows as they are: a table, a column of nulls, a column less. The number of the
format comes last, so an interrupted upgrade is a library of the earlier format still, and the next one does what is
left of it. The steps follow from the tables that are there, not from the number.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kinodex.index.errors import LibraryDamaged, NotALibrary
from kinodex.index.maintain import check_writable
from kinodex.index.store.database import Tables, place
from kinodex.index.store.indexes import create_table
from kinodex.index.store.leases import DEFAULT_LEASE, Lease
from kinodex.index.store.schema import (
    FORMAT_KEY,
    FORMAT_VERSION,
    LATE_TABLES,
    Heading,
    naming_columns,
    read_stored_heading,
    table_schemas,
)
from kinodex.index.sweep import MAINTENANCE, WRITERS

if TYPE_CHECKING:
    from lance import LanceDataset

OWNER = "kinodex upgrade"
GONE = {"segments": ("caption", "caption_confidence", "caption_model")}
"""Columns of format 1 that no kinodex ever filled."""
LOOKS_A_STEP, LEAST_STEP_S = 3, 0.06
"""A commit takes about as long as so many looks at a table, on a local disk no less than this (measured)."""


@dataclass(frozen=True, slots=True)
class Step:
    """One commit of an upgrade. `what` says what it does; nothing of the rows is written again."""

    what: str
    do: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Upgrade:
    """Report of an upgrade, or of a dry run."""

    uri: str
    found: int
    """The format that the library has, or had."""
    format_version: int
    steps: tuple[str, ...]
    seconds: float
    """That it took; of a dry run, about how long it takes, by the time that a look at the tables took."""


def upgrade(uri: str, *, dry_run: bool = False, on_step: Callable[[str], None] = lambda what: None) -> Upgrade:
    """Bring the library at `uri` to this version's format, in place, or say what that would do.

    Raises NotALibrary, NewerLibrary, LibraryDamaged, StorageError, or LibraryBusy where somebody writes to it.
    """
    where, began = place(uri), time.monotonic()
    tables = Tables(where)
    if not tables.has("videos"):
        raise NotALibrary(f"got {uri}, where there is no library; `kinodex ingest` makes one")
    heading = read_stored_heading(tables.schema("videos"), where)
    wanted = table_schemas(heading.settings, heading.fingerprint)
    steps = [*_steps(tables, wanted, heading)]
    if dry_run or not steps:
        looked_s = (time.monotonic() - began) / len(wanted)
        seconds = max(LOOKS_A_STEP * looked_s, LEAST_STEP_S) * len(steps)
        return Upgrade(where, heading.format_version, FORMAT_VERSION, tuple(step.what for step in steps), seconds)
    check_writable(where)
    create_table(tables, "leases", wanted["leases"])
    with ExitStack() as leases:
        for name in (*WRITERS, MAINTENANCE):
            leases.enter_context(Lease(tables, name, OWNER, DEFAULT_LEASE))
        for step in steps:
            on_step(step.what)
            step.do()
    whats = tuple(step.what for step in steps)
    return Upgrade(where, heading.format_version, FORMAT_VERSION, whats, time.monotonic() - began)


def _steps(tables: Tables, wanted: dict[str, pa.Schema], heading: Heading) -> Iterator[Step]:
    """List the steps that are left, the number of the format last."""
    late = {name: schema for name, schema in LATE_TABLES.items() if tables.has(name)}
    for name, schema in {**wanted, **late}.items():
        if not tables.has(name):
            yield Step(f"makes the table {name}", partial(create_table, tables, name, schema))
            continue
        held = tables.schema(name)
        missing = [field for field in schema if field.name not in held.names]
        if any(not field.nullable for field in missing):
            _check_empty(tables, name)
            yield Step(f"makes the table {name} again, which has no rows", partial(_make_again, tables, name, schema))
            continue
        for field in missing:
            yield Step(f"adds the column {field.name} to {name}", partial(_add_column, tables, name, field))
        for column in (each for each in GONE.get(name, ()) if each in held.names):
            yield Step(
                f"drops the column {column} of {name}, which was never filled", partial(_drop, tables, name, column)
            )
    if heading.format_version < FORMAT_VERSION:
        yield Step(f"writes the format {FORMAT_VERSION}", partial(_write_format, tables))


def _check_empty(tables: Tables, name: str) -> None:
    if tables.count(name):
        raise LibraryDamaged(
            f"the table {name} of {tables.uri} has rows, which no kinodex wrote in its format; nothing was changed: "
            "ingest its videos into a new library"
        )


def _make_again(tables: Tables, name: str, schema: pa.Schema) -> None:
    _check_empty(tables, name)
    tables.rewrite(name, lambda rows: naming_columns(schema).empty_table())


def _add_column(tables: Tables, name: str, field: pa.Field) -> None:
    def add(newest: LanceDataset) -> None:
        if field.name not in newest.schema.names:
            newest.add_columns(field)

    tables.commit(name, add)


def _drop(tables: Tables, name: str, column: str) -> None:
    if tables.count(name) != int(tables[name].count_rows(f"{column} IS NULL")):
        raise LibraryDamaged(f"the column {column} of {name} in {tables.uri} is not empty; nothing was changed")
    tables.commit(name, lambda newest: newest.drop_columns([column]))


def _write_format(tables: Tables) -> None:
    changed: dict[str, Any] = {FORMAT_KEY.decode(): str(FORMAT_VERSION)}
    tables.commit("videos", lambda newest: newest.update_schema_metadata(changed))
