"""Complete videos and additions: looked up by id, and cached until the tables change.

A search over a million videos must not read a million rows first, nor again whenever an ingest completes some.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from index.errors import LibraryError
from index.rows import VideoRow
from index.store.filters import all_of, equal, one_of
from index.store.schema import STAGES
from index.store.tables import Tables

MANY = 500
"""More ids than this are not looked up one by one: everything is read."""

Models = dict[str, tuple[str, ...]]
"""Video ids to the models of one stage that are complete there, the newest last."""


def complete_videos(tables: Tables, ids: Sequence[str] | None = None) -> dict[str, VideoRow]:
    """Read the rows of the complete videos among these, or of all, by id."""
    chosen = [] if ids is None else [one_of("video_id", ids)]
    rows = tables.rows("videos", all_of([*chosen, equal("state", "complete")])).to_pylist()
    return {row["video_id"]: VideoRow(**row) for row in rows}


def complete_models(tables: Tables, stage: str, ids: Sequence[str] | None = None) -> Models:
    """Read which models completed a stage, for each of these videos, or all, that has a complete addition of it."""
    chosen = [] if ids is None else [one_of("video_id", ids)]
    where = all_of([*chosen, equal("stage", checked_stage(stage))])
    rows = tables.rows("additions", where, ["video_id", "model", "added_at"])
    models: Models = {}
    for row in rows.sort_by([("added_at", "ascending"), ("model", "ascending")]).to_pylist():
        models[row["video_id"]] = (*models.get(row["video_id"], ()), row["model"])
    return models


def checked_stage(stage: str) -> str:
    """Return the name of a stage; raises LibraryError for an unknown one."""
    if stage not in STAGES:
        raise LibraryError(f"got stage {stage!r}; it is one of {', '.join(STAGES)}")
    return stage


@dataclass(slots=True)
class _Cached:
    version: int
    rows: dict[str, Any] = field(default_factory=dict)
    known_ids: set[str] = field(default_factory=set)
    is_whole: bool = False


class VisibilityCache:
    """Videos and additions that readers of a library may see at this moment. `ids` of None asks for everything."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._cached: dict[str, _Cached] = {}

    def videos(self, ids: Collection[str] | None = None) -> dict[str, VideoRow]:
        """Look up the complete videos among `ids`."""
        return self._look_up("videos", "videos", ids, lambda missing: complete_videos(self._tables, missing))

    def models(self, stage: str, ids: Collection[str] | None = None) -> Models:
        """Look up the models that completed a stage in the videos `ids`, the newest last."""
        return self._look_up("additions", stage, ids, lambda missing: complete_models(self._tables, stage, missing))

    def _look_up(
        self,
        table: str,
        kind: str,
        ids: Collection[str] | None,
        read: Callable[[Sequence[str] | None], dict[str, Any]],
    ) -> dict[str, Any]:
        version = self._tables.version(table)
        cached = self._cached.get(kind)
        if cached is None or cached.version != version:
            cached = self._cached[kind] = _Cached(version)
        if (ids is None or len(ids) > MANY) and not cached.is_whole:
            cached.rows, cached.is_whole = read(None), True
        if ids is None:
            return cached.rows
        missing = [] if cached.is_whole else [id_ for id_ in ids if id_ not in cached.known_ids]
        if missing:
            cached.rows.update(read(missing))
            cached.known_ids.update(missing)
        return {id_: cached.rows[id_] for id_ in ids if id_ in cached.rows}
