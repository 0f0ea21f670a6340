"""Extracts: tables of a library's own, whose rows a model filled in part by part under a schema (`kinodex extract`).

Each version of an extract, by its schema, prompt, model and parts, is a table, and the stage "extracts" of videos by
the key `NAME@DIGEST`. So a changed schema leaves what was there as it is. `NAME` stands for the newest version.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kinodex.index.clocks import moved_s, moved_table
from kinodex.index.conditions import compiled, query_error
from kinodex.index.errors import QueryError
from kinodex.index.store.database import Tables
from kinodex.index.store.filters import Filter, all_of, equal, one_of
from kinodex.index.store.held_tables import own_tables
from kinodex.index.store.late_tables import ensure_table
from kinodex.index.store.schema import extract_table, extracts_schema
from kinodex.index.stored_json import read_facts
from kinodex.index.terms import TERMS
from kinodex.index.videos.visibility import VisibilityCache

STAGE = "extracts"
VERSION_KEY = b"kinodex.extract"
NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
SHIFTED = ("start_s", "end_s", "evidence_start_s", "evidence_end_s")


@dataclass(frozen=True, slots=True)
class ExtractVersion:
    """One version of an extract: `definition` is all that its rows depend on, as JSON holds it."""

    name: str
    digest: str
    made_at: str
    definition: Mapping[str, Any]

    @property
    def key(self) -> str:
        return f"{self.name}@{self.digest}"

    @property
    def stage(self) -> str:
        return STAGE

    @property
    def table(self) -> str:
        return extract_table(self.key)


class Extracts:
    """Extracts of one library, by name or key. Times are those that a player shows."""

    def __init__(self, tables: Tables, visible: VisibilityCache) -> None:
        self._tables = tables
        self._visible = visible

    def versions(self, name: str | None = None) -> list[ExtractVersion]:
        """Return all versions, or those of one extract: by name, then the newest last."""
        held = own_tables(self._tables, STAGE).values()
        told = {table: (self._tables[table].schema.metadata or {}).get(VERSION_KEY, "") for table in held}
        found = [read_facts(ExtractVersion, text, f"the table {table}") for table, text in told.items()]
        chosen = [each for each in found if name in (None, each.name, each.key)]
        return sorted(chosen, key=lambda each: (each.name, each.made_at))

    def version(self, name: str) -> ExtractVersion | None:
        """Return the version of a key, or the newest of a name that is complete for any video.

        Return None if there is none.
        """
        found = self.versions(name)
        complete = {key for keys in self._visible.models(STAGE).values() for key in keys} if len(found) > 1 else set()
        return next((each for each in reversed(found) if each.key in complete), found[-1] if found else None)

    def make(self, version: ExtractVersion, columns: pa.Schema) -> None:
        """Make the table of a version, if it is missing."""
        schema = extracts_schema(columns).with_metadata({VERSION_KEY: json.dumps(asdict(version))})
        ensure_table(self._tables, version.table, schema)

    def add(self, videos: Mapping[str, Sequence[Mapping[str, Any]]], key: str) -> None:
        """Append rows by video id; `Additions.complete` makes them visible."""
        zeros_s, table = self._visible.zeros_s(videos), extract_table(key)
        rows = [
            {"video_id": id_, **{name: _at(row, name, zeros_s[id_]) for name in row}}
            for id_, of_video in videos.items()
            for row in of_video
        ]
        self._tables.append(table, pa.Table.from_pylist(rows, self._tables.schema(table)))

    def rows(self, name: str, video_ids: Sequence[str] | None = None, where: str | None = None) -> pa.Table:
        """Read the rows of complete videos, by title, part and time, or those for which a condition holds.

        Raises QueryError for an unknown extract, and for what is no condition on its columns.
        """
        version = self.version(name)
        if version is None:
            held = ", ".join(dict.fromkeys(each.name for each in self.versions())) or "none"
            raise QueryError(f"got extract {name}, and {self._tables.uri} has {held}; `kinodex extract` makes one")
        videos = self._visible.videos(video_ids)
        models = self._visible.models(STAGE, video_ids)
        shown = [row for row in videos.values() if version.key in models.get(row.video_id, ())]
        order = {row.video_id: at for at, row in enumerate(sorted(shown, key=lambda row: (row.title, row.video_id)))}
        wanted = [one_of("video_id", list(video_ids))] if video_ids is not None else []
        if where is not None:
            columns = {each.name: each.type for each in self._tables.schema(version.table)}
            wanted.append(Filter(compiled(where, columns)))
        try:
            stored = self._tables.rows(version.table, all_of(wanted))
        except ValueError as error:
            if where is None:
                raise
            raise query_error(where, columns, " ".join(str(error).split())[:200]) from error
        stored = stored.filter(pc.is_in(stored["video_id"], pa.array(list(order), pa.string())))
        keys = zip(*(stored[name].to_pylist() for name in ("video_id", "part_no", "row_no")), strict=True)
        ranks = [(order[id_], *numbers) for id_, *numbers in keys]
        stored = stored.take(pa.array(sorted(range(len(ranks)), key=ranks.__getitem__), pa.int64()))
        late_s = {id_: -zero_s for id_, zero_s in self._visible.late_zeros_s(None).items()}
        return moved_table(stored.drop_columns([TERMS]), late_s, SHIFTED)

    def held(self, key: str, video_id: str) -> list[dict[str, Any]]:
        """Read the rows of one video, complete or not, as `add` took them."""
        zero_s = self._visible.zeros_s([video_id])[video_id]
        rows = self._tables.rows(extract_table(key), equal("video_id", video_id)).drop_columns(["video_id", TERMS])
        return [{name: _at(row, name, -zero_s) for name in row} for row in rows.to_pylist()]

    def faulty(self, key: str) -> list[str]:
        """List the complete videos that have parts of which no reply could be used."""
        if not self._tables.has(extract_table(key)):
            return []
        rows = self._tables.rows(extract_table(key), Filter("fault IS NOT NULL"), ["video_id"])
        found = set(rows["video_id"].to_pylist())
        models = self._visible.models(STAGE)
        return sorted(id_ for id_ in self._visible.videos(found) if key in models.get(id_, ()))

    def forget_empty(self, key: str) -> None:
        """Drop the table of a version that has no row and no complete video any more."""
        complete = any(key in keys for keys in self._visible.models(STAGE).values())
        table = extract_table(key)
        if not complete and self._tables.has(table) and not self._tables.count(table):
            self._tables.drop(table)


def _at(row: Mapping[str, Any], name: str, by_s: float) -> Any:
    value = row[name]
    return moved_s(value, by_s) if name in SHIFTED and value is not None else value


def made_now() -> str:
    """Return the time of a new version."""
    return datetime.now().astimezone().isoformat()
