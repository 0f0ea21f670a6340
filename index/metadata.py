"""Columns of a library's own about its videos (camera, recorded_at, ...), and the videos that a condition in SQL finds.

They lie in a table of their own, a row a video: rows of `videos` are hashed as they were written, so no column may come
to them later. A condition sees the columns of both.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kinodex.index.conditions import compiled, query_error
from kinodex.index.errors import MetadataConflict, QueryError
from kinodex.index.rows import VideoRow
from kinodex.index.store.database import State, Tables
from kinodex.index.store.digests import altered_digests, with_row_digests
from kinodex.index.store.filters import chunked, equal, one_of
from kinodex.index.store.held_tables import present
from kinodex.index.store.late_tables import ensure_table
from kinodex.index.store.leases import awaited_lease
from kinodex.index.store.quiet_lance import lance
from kinodex.index.store.schema import METADATA, ROW_DIGEST, VIDEOS, naming_columns
from kinodex.index.store.storage_errors import RUST_SOURCE
from kinodex.index.text import beginning, composed

OF_VIDEOS = (
    "title", "uri", "duration_s", "fps", "width_px", "height_px", "codec", "frames", "segments", "speech_lines",
    "sample_fps", "ingested_at",
)  # fmt: skip
"""Columns of `videos` that a condition may name beside a library's own."""
WIDER = {
    frozenset({"int64", "double"}): pa.float64(),
    frozenset({"date32[day]", "timestamp[us, tz=UTC]"}): pa.timestamp("us", "UTC"),
}
"""What holds the values of two types that differ; any other two are a conflict."""
RECORDED_AT, LIVE_SOURCE, GAP = "recorded_at", "live_source", "gap_s"
"""Columns of a part of a source that grows: when it begins, the source's name, seconds missing before it."""
LEASE, OWNER = "metadata", "kinodex set metadata"
Row = Mapping[str, Any]
"""Values by column."""
CONDITIONS_KEPT = 64
FEW_VALUES = 20
"""A column with at most this many different values is a choice among them."""


@dataclass(frozen=True, slots=True)
class Facet:
    """Values of some videos in a column: each with its number of videos, or, of many values, the least and the most."""

    name: str
    type: str
    values: tuple[tuple[Any, int], ...] = ()
    """Those of a column with few, the most frequent first; of lists, those in them."""
    least: Any = None
    most: Any = None
    missing: int = 0
    """Videos without a value."""


def shown_at(columns: Row, video: VideoRow, time_s: float) -> datetime | None:
    """Return the clock's time when a source that grew showed what is at `time_s` of its video.

    Return None for any other video.
    """
    recorded_at = columns.get(RECORDED_AT) if columns.get(LIVE_SOURCE) else None
    if not isinstance(recorded_at, datetime):
        return None
    return recorded_at + timedelta(seconds=time_s - video.start_s)


def plain(value: Any) -> str:
    """Return a value of a column as people read it, and as a condition has it between quotes."""
    if isinstance(value, list):
        return ", ".join(map(plain, value))
    if isinstance(value, date):
        return value.isoformat()
    return f"{value:g}" if isinstance(value, float) else str(value)


def is_column_name(name: str) -> bool:
    """Return True for the name of a column as it is stored: small letters of any script, digits and _."""
    return name.isidentifier() and name == unicodedata.normalize("NFC", name).lower()


class Metadata:
    """The columns of one library's own."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._joined: tuple[tuple[State, State | None], lance.LanceDataset] | None = None
        self._found: dict[str, frozenset[str]] = {}
        """By condition, in the state of `_joined`."""

    def columns(self) -> dict[str, pa.DataType]:
        """Return the columns and their types, in the order in which they came."""
        if not present(self._tables, ["metadata"]):
            return {}
        schema = self._tables["metadata"].schema  # the only table whose columns change: not the schema that is kept
        return {field.name: field.type for field in schema if field.name not in METADATA.names}

    def of(self, video_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return the values that videos have, by id and column."""
        if not present(self._tables, ["metadata"]):
            return {}
        shown = ["video_id", *self.columns()]
        parts = [
            self._tables.rows("metadata", one_of("video_id", ids), shown).to_pylist() for ids in chunked(video_ids)
        ]
        rows = {row.pop("video_id"): row for part in parts for row in part}
        return {id_: {name: value for name, value in row.items() if value is not None} for id_, row in rows.items()}

    def check(self, rows: Mapping[str, Row], names: Mapping[str, str] | None = None) -> dict[str, pa.DataType]:
        """Return the types that the columns of these rows, by video id, get.

        Raises MetadataConflict, which names two rows.
        """
        held, named = self.columns(), names or {}
        firsts = {name: self._first(name) for name in held}
        types: dict[str, pa.DataType] = {}
        for video_id, row in rows.items():
            for name, value in row.items():
                if value is None:
                    continue
                before, own = types.get(name) or held.get(name), _type_of(name, value)
                found = before if before is not None and _fits(value, before) else own
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
        _check_names({name for row in rows.values() for name in row}, self.columns())
        ensure_table(self._tables, "metadata")
        with awaited_lease(self._tables, LEASE, OWNER):
            types = self.check(rows, names)
            self._widen(types)
            parts = [self._tables.rows("metadata", one_of("video_id", ids)) for ids in chunked(list(rows))]
            held, schema = pa.concat_tables(parts), self._tables["metadata"].schema
            before = {row["video_id"]: row for row in held.to_pylist()}
            merged = [
                {**before.get(id_, {"video_id": id_}), **{name: _as(row[name], types[name]) for name in _set(row)}}
                for id_, row in rows.items()
            ]
            after = _digested(pa.Table.from_pylist(merged, schema), altered_digests(held))
            self._tables.upsert("metadata", ["video_id"], after)
        return len(rows)

    def drop(self, columns: Collection[str]) -> None:
        """Remove columns with all their values; raises QueryError for one that is not there."""
        held = self.columns()
        for name in columns:
            if name not in held:
                raise QueryError(f"got column {name}, which this library has not; it has {', '.join(held) or 'none'}")
        with awaited_lease(self._tables, LEASE, OWNER):
            self._rewrite(lambda rows: rows.drop_columns(list(columns)))

    def matching(self, condition: str) -> frozenset[str]:
        """Return the ids of the complete videos for which a condition holds; raises as `holding`."""
        return self.holding(condition)[0]

    def holding(self, condition: str) -> tuple[frozenset[str], int]:
        """Return the ids of the complete videos for which a condition holds, and how many there are in all.

        Raises QueryError for a condition that cannot run, which names the column nearest to an unknown one.

        Conditions are those of `kinodex.index.conditions`. What one found is kept until a video or a value changes.
        """
        table = self._join()
        if condition not in self._found:
            columns = {field.name: field.type for field in table.schema}
            sql = compiled(condition, {name: kind for name, kind in columns.items() if name != "video_id"})
            if len(self._found) >= CONDITIONS_KEPT:
                self._found.pop(next(iter(self._found)))
            self._found[condition] = _ids(table, sql, condition)
        return self._found[condition], table.count_rows()

    def facets(self, video_ids: Collection[str] | None = None) -> tuple[Facet, ...]:
        """Facets of the library's own columns, and of the lengths, among these complete videos, or all."""
        names = [*self.columns(), "duration_s"]
        rows = self._join().to_table(["video_id", *names])
        if video_ids is not None:
            rows = rows.filter(pc.is_in(rows["video_id"], pa.array(list(video_ids), pa.string())))
        return tuple(facet_of(name, rows[name]) for name in names if rows[name].null_count < rows.num_rows)

    def _first(self, column: str) -> tuple[str, Any]:
        """Return a video that has a value in a column, and the value."""
        filled = f"`{column}` IS NOT NULL"
        rows = self._tables["metadata"].to_table(["video_id", column], filter=filled, limit=1).to_pylist()
        return (rows[0]["video_id"], rows[0][column]) if rows else ("no video", None)

    def _widen(self, types: Mapping[str, pa.DataType]) -> None:
        """Add the columns that are not there, and widen those that are to hold more: in one commit, all or none."""
        held = self.columns()
        if all(held.get(name) == kind for name, kind in types.items()):
            return

        def widened(rows: pa.Table) -> pa.Table:
            for name, kind in types.items():
                if name in rows.schema.names:
                    place = rows.schema.get_field_index(name)
                    rows = rows.set_column(place, pa.field(name, kind), rows[name].cast(kind))
                else:
                    rows = rows.append_column(pa.field(name, kind), pa.nulls(rows.num_rows, kind))
            return rows

        self._rewrite(widened)

    def _rewrite(self, change: Callable[[pa.Table], pa.Table]) -> None:
        def digested(before: pa.Table) -> pa.Table:
            after = change(before)
            return _digested(after.cast(naming_columns(after.schema)), altered_digests(before))

        self._tables.rewrite("metadata", digested)

    def _join(self) -> lance.LanceDataset:
        """Return the complete videos with all their columns, in memory, made again when one of the two tables
        changes.
        """
        there = bool(present(self._tables, ["metadata"]))
        state = self._tables.state("videos"), self._tables.state("metadata") if there else None
        if self._joined is None or self._joined[0] != state:
            videos = self._tables.rows("videos", equal("state", "complete"), ["video_id", *OF_VIDEOS])
            if there:
                own = self._tables["metadata"].to_table()
                places = pc.index_in(videos["video_id"], own["video_id"])
                for name in self.columns():
                    videos = videos.append_column(own.schema.field(name), own[name].take(places))
            self._joined = state, lance.write_dataset(_composed(videos), "memory://")
            self._found.clear()
        return self._joined[1]


def _composed(rows: pa.Table) -> pa.Table:
    """Write all texts in the form in which they are compared."""
    for at, column in enumerate(rows.schema):
        if pa.types.is_string(column.type):
            rows = rows.set_column(at, column, pc.utf8_normalize(rows[column.name], form="NFC"))
        elif pa.types.is_list(column.type) and pa.types.is_string(column.type.value_type):
            lists = [None if each is None else list(map(composed, each)) for each in rows[column.name].to_pylist()]
            rows = rows.set_column(at, column, pa.array(lists, column.type))
    return rows


def _ids(table: lance.LanceDataset, sql: str, condition: str) -> frozenset[str]:
    try:
        return frozenset(table.to_table(["video_id"], filter=sql)["video_id"].to_pylist())
    except ValueError as error:
        reason = RUST_SOURCE.sub("", str(error).splitlines()[0]).removeprefix("Invalid user input: ").rstrip(".,")
        columns = {field.name: field.type for field in table.schema if field.name != "video_id"}
        raise query_error(condition, columns, reason) from error


def holds_objects(kind: pa.DataType) -> bool:
    """Return True for values that are objects, or lists of them or of lists: there is no facet of these."""
    return bool(pa.types.is_struct(kind) or (pa.types.is_list(kind) and pa.types.is_nested(kind.value_type)))


def facet_of(name: str, column: pa.ChunkedArray) -> Facet:
    """Return the facet of a column of plain values, or of lists of them."""
    missing, kind = column.null_count, column.type
    filled = pc.list_flatten(column.drop_null()) if pa.types.is_list(kind) else column.drop_null()
    counts = sorted(filled.value_counts().to_pylist(), key=lambda each: (-each["counts"], str(each["values"])))
    is_choice = pa.types.is_integer(kind) and len(counts) < len(filled)
    if len(counts) <= FEW_VALUES and (is_choice or not _is_ordered(filled.type)):
        return Facet(name, str(kind), tuple((each["values"], each["counts"]) for each in counts), missing=missing)
    if not _is_ordered(filled.type):
        return Facet(name, str(kind), missing=missing)
    ends = pc.min_max(filled).as_py()
    return Facet(name, str(kind), (), ends["min"], ends["max"], missing)


def _is_ordered(kind: pa.DataType) -> bool:
    return bool(pa.types.is_temporal(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _check_names(names: Collection[str], held: Collection[str]) -> None:
    if (count := len({*held, *names})) > MOST_COLUMNS:
        raise MetadataConflict(f"got {len(names):,} columns, which makes {count:,}; give {MOST_COLUMNS} at most")
    for name in sorted(names):
        if name in (*VIDEOS.names, *METADATA.names):
            raise MetadataConflict(f"got a column {name}, which every library has itself; name it otherwise")
        if not is_column_name(name):
            raise MetadataConflict(
                f"got a column {name!r}; give it small letters, digits and _, with a letter first, as SQL has them"
            )


MOST_COLUMNS = 500
"""Each is read with every search by a condition."""
LONGEST_SHOWN = 80
"""Characters of a value in an error."""


def _type_of(name: str, value: Any) -> pa.DataType:
    """Return the type of a column for a value: 64 bits for numbers, microseconds in UTC for times."""
    try:
        found = pa.scalar(value).type
    except (ValueError, pa.ArrowTypeError, OverflowError) as error:  # ValueError: half of a character, as "\ud800"
        raise MetadataConflict(
            f"got {beginning(repr(value), LONGEST_SHOWN)} for {name}, which no column can hold ({error})"
        ) from error
    if pa.types.is_timestamp(found):
        return pa.timestamp("us", "UTC")
    if pa.types.is_nested(found) and not pa.types.is_list(found):
        raise MetadataConflict(f"got {value!r} for {name}; give a number, a text, a time, true or false, or a list")
    return found


def _fits(value: Any, kind: pa.DataType) -> bool:
    """Return True if a column of this type holds the value as it is; a whole number is a number, a day is a time."""
    found = pa.infer_type([value])
    return bool(
        found == kind
        or WIDER.get(frozenset({str(found), str(kind)})) == kind
        or (pa.types.is_timestamp(found) and pa.types.is_timestamp(kind))
    )


def _digested(rows: pa.Table, altered: Collection[str]) -> pa.Table:
    """Return the rows with their digests, where the library has a column for them."""
    return with_row_digests(rows, altered) if ROW_DIGEST in rows.schema.names else rows


def _set(row: Row) -> list[str]:
    """Return the columns that a row has a value for."""
    return [name for name, value in row.items() if value is not None]


def _as(value: Any, kind: pa.DataType) -> Any:
    """Return the value as its column's type has it."""
    if pa.types.is_timestamp(kind):
        moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return float(value) if pa.types.is_floating(kind) else value
