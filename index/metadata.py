"""Columns of a library's own about its videos (camera, recorded_at, ...), and the videos that a condition in SQL finds.

They lie in a table of their own, a row a video: rows of `videos` are hashed as they were written, and an older kinodex,
which knows no further columns, may still write there. A condition sees the columns of both.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kinodex.index.errors import MetadataConflict, QueryError, checked_text
from kinodex.index.store.database import RUST_SOURCE, State, Tables
from kinodex.index.store.indexes import ensure_table, present
from kinodex.index.store.leases import awaited_lease
from kinodex.index.store.quiet_lance import lance
from kinodex.index.store.schema import METADATA, VIDEOS, chunked, equal, one_of

OF_VIDEOS = (
    "title", "uri", "duration_s", "fps", "width_px", "height_px", "codec", "frames", "segments", "transcript_lines",
    "sample_fps", "ingested_at",
)  # fmt: skip
"""Columns of `videos` that a condition may name beside a library's own."""
COLUMN_NAME = re.compile(r"[a-z_][a-z0-9_]*")
WIDER = {
    frozenset({"int64", "double"}): pa.float64(),
    frozenset({"date32[day]", "timestamp[us, tz=UTC]"}): pa.timestamp("us", "UTC"),
}
"""What holds the values of two types that differ; any other two are a conflict."""
A_TIME = re.compile(r"(?<!timestamp )(?<!date )('\d{4}-\d\d-\d\d(?:[T ][\d:.]+(?:Z|[+-]\d\d:\d\d)?)?')", re.IGNORECASE)
LEASE, OWNER = "metadata", "kinodex set metadata"
Row = Mapping[str, Any]
"""Values by column."""


class Metadata:
    """The columns of one library's own."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._joined: tuple[tuple[State, State | None], lance.LanceDataset] | None = None

    def columns(self) -> dict[str, pa.DataType]:
        """The columns and their types, in the order in which they came."""
        if not present(self._tables, ["metadata"]):
            return {}
        schema = self._tables["metadata"].schema  # the only table whose columns change: not the schema that is kept
        return {field.name: field.type for field in schema if field.name != "video_id"}

    def of(self, video_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The values of videos by id and column, those that are there."""
        if not present(self._tables, ["metadata"]):
            return {}
        parts = [self._tables.rows("metadata", one_of("video_id", ids)).to_pylist() for ids in chunked(video_ids)]
        rows = {row.pop("video_id"): row for part in parts for row in part}
        return {id_: {name: value for name, value in row.items() if value is not None} for id_, row in rows.items()}

    def check(self, rows: Mapping[str, Row], names: Mapping[str, str] | None = None) -> dict[str, pa.DataType]:
        """The types that the columns of these rows, by video id, get; raises MetadataConflict, which names two rows."""
        held, named = self.columns(), names or {}
        firsts = {name: self._first(name) for name in held}
        types: dict[str, pa.DataType] = {}
        for video_id, row in rows.items():
            for name, value in row.items():
                if value is None:
                    continue
                before = types.get(name) or held.get(name)
                found = before if before is not None and _fits(value, before) else _type_of(name, value)
                joined = found if before in (None, found) else WIDER.get(frozenset({str(before), str(found)}))
                where = named.get(video_id, video_id)
                if joined is None:
                    other, shown = firsts[name]
                    raise MetadataConflict(
                        f"got {value!r} for {name} of {where}, and {named.get(other, other)} has {shown!r}: a column "
                        "has values of one type; correct one of the two, or name the column otherwise"
                    )
                firsts.setdefault(name, (video_id, value))
                types[name] = joined
        return types

    def write(self, rows: Mapping[str, Row], names: Mapping[str, str] | None = None) -> int:
        """Set values of videos, by id and column, in one commit, but None; returns the number of videos."""
        rows = {id_: row for id_, row in rows.items() if any(value is not None for value in row.values())}
        if not rows:
            return 0
        _check_names({name for row in rows.values() for name in row})
        ensure_table(self._tables, "metadata")
        with awaited_lease(self._tables, LEASE, OWNER):
            types = self.check(rows, names)
            self._widen(types)
            before = self.of(list(rows))
            merged = [
                {name: _as(row.get(name), kind, before.get(id_, {}).get(name)) for name, kind in types.items()}
                | {"video_id": id_}
                for id_, row in rows.items()
            ]
            schema = pa.schema([METADATA.field("video_id"), *(pa.field(name, kind) for name, kind in types.items())])
            self._tables.upsert("metadata", ["video_id"], pa.Table.from_pylist(merged, schema))
        return len(rows)

    def drop(self, columns: Collection[str]) -> None:
        """Remove columns with all their values; raises QueryError for one that is not there."""
        held = self.columns()
        for name in columns:
            if name not in held:
                raise QueryError(f"got column {name}, which this library has not; it has {', '.join(held) or 'none'}")
        with awaited_lease(self._tables, LEASE, OWNER):
            table = self._tables["metadata"].to_table()
            self._tables.overwrite("metadata", table.drop_columns(list(columns)))

    def matching(self, condition: str) -> list[str]:
        """The ids of the complete videos that a condition holds for; raises QueryError, which names the nearest column.

        The condition is DataFusion's SQL; the day or time of a column of times may be a plain text.
        """
        checked_text(condition)
        table = self._join()
        try:
            return _ids(table, condition)
        except ValueError as error:
            if "could not convert to literal of type 'Timestamp" in str(error) or "type 'Date" in str(error):
                condition = A_TIME.sub(r"timestamp \1", condition)
            try:
                return _ids(table, condition)
            except ValueError as second:
                raise _query_error(condition, table.schema.names, str(second)) from error

    def _first(self, column: str) -> tuple[str, Any]:
        """A video that has a value in a column, and the value."""
        rows = (
            self._tables["metadata"].to_table(["video_id", column], filter=f"{column} IS NOT NULL", limit=1).to_pylist()
        )
        return (rows[0]["video_id"], rows[0][column]) if rows else ("no video", None)

    def _widen(self, types: Mapping[str, pa.DataType]) -> None:
        """Add the columns that are not there, and widen those that are to hold more: in one commit, all or none."""
        held = self.columns()
        if all(held.get(name) == kind for name, kind in types.items()):
            return
        table = self._tables["metadata"].to_table()
        for name, kind in types.items():
            if name in held:
                place = table.schema.get_field_index(name)
                table = table.set_column(place, pa.field(name, kind), table[name].cast(kind))
            else:
                table = table.append_column(pa.field(name, kind), pa.nulls(table.num_rows, kind))
        self._tables.overwrite("metadata", table)

    def _join(self) -> lance.LanceDataset:
        """The complete videos with all their columns, in memory, made again when one of the two tables changes."""
        there = bool(present(self._tables, ["metadata"]))
        state = self._tables.state("videos"), self._tables.state("metadata") if there else None
        if self._joined is None or self._joined[0] != state:
            videos = self._tables.rows("videos", equal("state", "complete"), ["video_id", *OF_VIDEOS])
            if there:
                own = self._tables["metadata"].to_table()
                places = pc.index_in(videos["video_id"], own["video_id"])
                for name in own.column_names[1:]:
                    videos = videos.append_column(own.schema.field(name), own[name].take(places))
            self._joined = state, lance.write_dataset(videos, "memory://")
        return self._joined[1]


def _ids(table: lance.LanceDataset, condition: str) -> list[str]:
    ids: list[str] = table.to_table(["video_id"], filter=condition)["video_id"].to_pylist()
    return ids


def _query_error(condition: str, columns: Sequence[str], text: str) -> QueryError:
    """The error of a condition that cannot be run, in one line."""
    reason = RUST_SOURCE.sub("", text.splitlines()[0]).removeprefix("Invalid user input: ").rstrip(".,")
    if unknown := re.search(r"No field named \W?(\w+)", reason):
        near = get_close_matches(unknown[1].lower(), columns, n=1, cutoff=0.5)
        reason = f"there is no column {unknown[1]}{f'; did you mean {near[0]}?' if near else ''}"
    shown = ", ".join(name for name in columns if name != "video_id")
    return QueryError(f"got the condition {condition!r}: {reason}; the columns are {shown}")


def _check_names(names: Collection[str]) -> None:
    for name in sorted(names):
        if name in VIDEOS.names:
            raise MetadataConflict(f"got a column {name}, which every library has itself; name it otherwise")
        if not COLUMN_NAME.fullmatch(name):
            raise MetadataConflict(
                f"got a column {name!r}; give it small letters, digits and _, with a letter first, as SQL has them"
            )


def _type_of(name: str, value: Any) -> pa.DataType:
    """The type of a column for a value: 64 bits for numbers, microseconds in UTC for times."""
    try:
        found = pa.scalar(value).type
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise MetadataConflict(f"got {value!r} for {name}, which no column can hold ({error})") from error
    if pa.types.is_timestamp(found):
        return pa.timestamp("us", "UTC")
    if pa.types.is_nested(found) and not pa.types.is_list(found):
        raise MetadataConflict(f"got {value!r} for {name}; give a number, a text, a time, true or false, or a list")
    return found


def _fits(value: Any, kind: pa.DataType) -> bool:
    """True if a column of this type holds the value as it is; a whole number is a number, a day is a time."""
    found = pa.infer_type([value])
    return bool(
        found == kind
        or WIDER.get(frozenset({str(found), str(kind)})) == kind
        or (pa.types.is_timestamp(found) and pa.types.is_timestamp(kind))
    )


def _as(value: Any, kind: pa.DataType, otherwise: Any) -> Any:
    """The value as its column's type has it, or the one that was there."""
    if value is None:
        return otherwise
    if pa.types.is_timestamp(kind):
        moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return float(value) if pa.types.is_floating(kind) else value
