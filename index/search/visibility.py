"""Which videos and additions are complete: looked up by id and kept until the tables change.

Searching a million videos must not read a million rows first, nor again whenever an ingest completes some.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from index.annotations.additions import Models, complete_models
from index.rows import VideoRow
from index.store.tables import Tables
from index.videos.read import complete_videos

MANY = 500
"""More ids than this are not looked up one by one: everything is read."""


@dataclass(slots=True)
class _Kept:
    version: int
    found: dict[str, Any] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    whole: bool = False


class VisibilityCache:
    """What readers of a library may see at this moment. `ids` of None asks for everything."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._kept: dict[str, _Kept] = {}

    def videos(self, ids: Collection[str] | None = None) -> dict[str, VideoRow]:
        """The complete videos among `ids`."""
        return self._look_up("videos", "videos", ids, lambda wanted: complete_videos(self._tables, wanted))

    def models(self, stage: str, ids: Collection[str] | None = None) -> Models:
        """The models that completed a stage in the videos `ids`, the newest last."""
        return self._look_up("additions", stage, ids, lambda wanted: complete_models(self._tables, stage, wanted))

    def _look_up(
        self,
        table: str,
        kind: str,
        ids: Collection[str] | None,
        read: Callable[[Sequence[str] | None], dict[str, Any]],
    ) -> dict[str, Any]:
        version = self._tables.version(table)
        kept = self._kept.get(kind)
        if kept is None or kept.version != version:
            kept = self._kept[kind] = _Kept(version)
        if (ids is None or len(ids) > MANY) and not kept.whole:
            kept.found, kept.whole = read(None), True
        if ids is None:
            return kept.found
        unknown = [] if kept.whole else [id_ for id_ in ids if id_ not in kept.asked]
        if unknown:
            kept.found.update(read(unknown))
            kept.asked.update(unknown)
        return {id_: kept.found[id_] for id_ in ids if id_ in kept.found}
