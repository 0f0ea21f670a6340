"""Videos and additions that readers may see, by id, by name or in a space; cached until the tables change.

A search over a million videos must not read a million rows first, nor again whenever an ingest completes some.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from kinodex.index.clocks import first_zero_s, moved
from kinodex.index.errors import LibraryError, NoVectors, SpaceMismatch, UnknownVideo
from kinodex.index.rows import VideoRow
from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.index.store.database import State, Tables
from kinodex.index.store.filters import Filter, all_of, any_of, equal, one_of, other_than
from kinodex.index.store.held_tables import find_space, space_tables
from kinodex.index.store.schema import STAGES, ZERO, own_vectors_table
from kinodex.index.text import composed
from kinodex.redaction import redact_uri

MANY = 500
"""More ids than this are not looked up one by one: everything is read."""
NEVER = datetime.fromtimestamp(0, UTC)
MIN_PREFIX = 4
MIN_PART = 3
NAMES_SHOWN = 5
Models = dict[str, tuple[str, ...]]
"""Video ids to the models of one stage that are complete there, the newest last."""


class Readable(Protocol):
    """Tables at their newest state, or at a fixed one."""

    def rows(self, name: str, where: Filter | None, columns: Sequence[str]) -> pa.Table: ...

    def schema(self, name: str) -> pa.Schema: ...


def complete_videos(
    tables: Tables, ids: Sequence[str] | None = None, *, as_stored: bool = False
) -> dict[str, VideoRow]:
    """Read the rows of the complete videos among these, or of all, by id.

    Raises LibraryDamaged for times that are none, but where a check reads them `as_stored`.
    """
    chosen = [] if ids is None else [one_of("video_id", ids)]
    columns = [*VideoRow.__slots__]
    where = all_of([*chosen, equal("state", "complete")])
    if as_stored:
        columns.remove("ingested_at")  # which may be beyond what a clock has
        rows = [row | {"ingested_at": NEVER} for row in tables.rows_as_stored("videos", where, columns).to_pylist()]
    else:
        rows = tables.rows("videos", where, columns).to_pylist()
    return {
        row["video_id"]: VideoRow(**moved(row, -zero_s) | {ZERO: zero_s}) for row in rows for zero_s in [_zero(row)]
    }


def late_zeros_s(tables: Readable, ids: Sequence[str] | None = None) -> dict[str, float]:
    """Read the presentation times of 0:00 that are not 0, of these videos or of all: most have none to read."""
    chosen = [] if ids is None else [one_of("video_id", ids)]
    columns = ["video_id", "uri", "start_s", ZERO]
    late = any_of([other_than(name, 0) for name in ("start_s", ZERO)])
    zeros_s = {
        row["video_id"]: _zero(row) for row in tables.rows("videos", all_of([*chosen, late]), columns).to_pylist()
    }
    return {video_id: zero_s for video_id, zero_s in zeros_s.items() if zero_s}


def _zero(row: Mapping[str, Any]) -> float:
    """Return the time of 0:00 as it is stored; where a repair did not know it, by its pictures."""
    zero_s: float | None = row[ZERO]
    return first_zero_s(row["uri"], row["start_s"]) if zero_s is None else zero_s


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


def most_used_space(tables: Tables, stage: str) -> Fingerprint | None:
    """Find the model that embedded the most videos, of several the one that was used last; None if there is none."""
    spaces = {space.digest: space for space in space_tables(tables, f"{stage}_").values()}
    if len(spaces) < 2:
        return next(iter(spaces.values()), None)
    rows = tables.rows("additions", equal("stage", stage), ["model", "added_at"]).group_by("model")
    by_model = rows.aggregate([("model", "count"), ("added_at", "max")])
    order = [("model_count", "descending"), ("added_at_max", "descending"), ("model", "ascending")]
    digests = [*by_model.sort_by(order)["model"].to_pylist(), *spaces]
    return next(spaces[digest] for digest in digests if digest in spaces)


@dataclass(slots=True)
class _Cached:
    state: State
    rows: dict[str, Any] = field(default_factory=dict)
    known_ids: set[str] = field(default_factory=set)
    is_whole: bool = False


class VisibilityCache:
    """Videos and additions that readers of a library may see at this moment. `ids` of None asks for everything.

    With `chosen`, which gives ids and the number of all complete videos, no other videos are seen; additions of
    all are, which runs need to tidy up.
    """

    def __init__(self, tables: Tables, chosen: Callable[[], tuple[frozenset[str], int]] | None = None) -> None:
        self._tables = tables
        self._chosen = chosen
        self._cached: dict[str, _Cached] = {}

    def narrowed(self, chosen: Callable[[], tuple[frozenset[str], int]]) -> VisibilityCache:
        """Return the same, of these videos alone; what either has read, both have."""
        found = VisibilityCache(self._tables, chosen)
        found._cached = self._cached
        return found

    def among(self) -> tuple[frozenset[str] | None, float]:
        """Return the ids of the only videos that are seen, None for all; and their share of all complete videos."""
        if self._chosen is None:
            return None, 1.0
        ids, every = self._chosen()
        return ids, len(ids) / max(every, 1)

    def seen(self, rows: pa.Table) -> pa.Table:
        """Keep the rows, each with a `video_id`, of no other videos than are seen."""
        ids, _ = self.among()
        return rows if ids is None else rows.filter(pc.is_in(rows["video_id"], pa.array(list(ids), pa.string())))

    def videos(self, ids: Collection[str] | None = None) -> dict[str, VideoRow]:
        """Look up the complete videos among `ids`."""
        if self._chosen is not None:
            seen = self._chosen()[0]
            ids = seen if ids is None else [id_ for id_ in ids if id_ in seen]
        return self._look_up("videos", "videos", ids, lambda missing: complete_videos(self._tables, missing))

    def zeros_s(self, ids: Collection[str]) -> dict[str, float]:
        """Look up the presentation time of 0:00 of each video: 0 for one that is not there."""
        held = self.videos(ids)
        return {id_: held[id_].zero_s if id_ in held else 0.0 for id_ in ids}

    def late_zeros_s(self, ids: Collection[str] | None) -> dict[str, float]:
        """Look up the presentation times of 0:00 that are not 0, of these videos or of all."""
        return self._look_up("videos", "zeros", ids, lambda missing: late_zeros_s(self._tables, missing))

    def video(self, name: str, *, whole_name: bool = False) -> VideoRow:
        """Find a complete video by its id, without reading the others, or as `find_video` does."""
        by_id = self.videos([name])
        return by_id[name] if by_id else find_video(self.videos(), name, whole_name=whole_name)

    def models(self, stage: str, ids: Collection[str] | None = None) -> Models:
        """Look up the models that completed a stage in the videos `ids`, the newest last."""
        return self._look_up("additions", stage, ids, lambda missing: complete_models(self._tables, stage, missing))

    def usual_space(self, stage: str) -> Fingerprint | None:
        """Return the model of sentences or clips that is used where none is named: see `most_used_space`."""
        kind, state = f"usual {stage}", self._tables.state("additions")
        cached = self._cached.get(kind)
        if cached is None or cached.state != state:
            found = most_used_space(self._tables, stage)
            cached = self._cached[kind] = _Cached(state, {stage: found}, is_whole=True)
        space: Fingerprint | None = cached.rows[stage]
        return space

    def _look_up(
        self,
        table: str,
        kind: str,
        ids: Collection[str] | None,
        read: Callable[[Sequence[str] | None], dict[str, Any]],
    ) -> dict[str, Any]:
        state = self._tables.state(table)
        cached = self._cached.get(kind)
        if cached is None or cached.state != state:
            cached = self._cached[kind] = _Cached(state)
        if (ids is None or len(ids) > MANY) and not cached.is_whole:
            cached.rows, cached.is_whole = read(None), True
        if ids is None:
            return cached.rows
        missing = [] if cached.is_whole else [id_ for id_ in ids if id_ not in cached.known_ids]
        if missing:
            cached.rows.update(read(missing))
            cached.known_ids.update(missing)
        return {id_: cached.rows[id_] for id_ in ids if id_ in cached.rows}


@dataclass(frozen=True, slots=True)
class SpaceScope:
    """Visible videos and the table of vectors of one space; `other` is None in the library's own."""

    visible: VisibilityCache
    uri: str
    vectors: str | None
    other: Fingerprint | None

    @property
    def table(self) -> str:
        """The table of vectors; raises NoVectors in a library without a space."""
        if self.vectors is None:
            raise NoVectors.of(self.uri)
        return self.vectors

    def videos(self, ids: Collection[str]) -> dict[str, VideoRow]:
        """Look up the complete videos among `ids` that have vectors in this space."""
        videos = self.visible.videos(ids)
        if self.other is None:
            return videos
        models = self.visible.models("vectors", ids)
        return {id_: row for id_, row in videos.items() if self.other.digest in models.get(id_, ())}

    def check(self, ids: Collection[str]) -> None:
        """Raise SpaceMismatch if one of these complete videos has frames, but no vectors of them in this space."""
        if self.other is None:
            return
        videos = self.visible.videos(ids)
        for video_id in videos.keys() - self.videos(ids):
            if videos[video_id].frames:
                raise SpaceMismatch(
                    f"got space {self.other}, where {videos[video_id].title} has no vectors yet; "
                    f"run `kinodex add vectors`"
                )


def space_scope(tables: Tables, visible: VisibilityCache, own: Fingerprint, name: str | None) -> SpaceScope:
    """Find a space of the library by name or digest, None being its own; raises SpaceMismatch if it is missing."""
    if name is None or own.is_own(name):
        return SpaceScope(visible, tables.uri, own_vectors_table(own), None)
    table, space = find_space(tables, name)
    return SpaceScope(visible, tables.uri, table, None if space.digest == own.digest else space)


def find_video(videos: Mapping[str, VideoRow], name: str, *, whole_name: bool = False) -> VideoRow:
    """Find the one video of that id, id prefix, title, file name or URI, else of a title or file name that holds it.

    Upper and lower case are the same in a part of a title; no part is enough if the `whole_name` is required.
    """
    if name in videos:
        return videos[name]
    named, what = _named(videos, name), "a name of"
    if not named and len(name) >= MIN_PREFIX:
        named = [row for row in videos.values() if row.video_id.startswith(name)]
    if not named and not whole_name and len(name) >= MIN_PART:
        named, what = _holding(videos, name), "in the titles of"
    if len(named) == 1:
        return named[0]
    if named:
        several = _listed([f"{row.title} ({row.video_id[:12]})" for row in named])
        raise UnknownVideo(f"got video {name!r}, which is {what} {len(named)} videos: {several}; give an id")
    if not videos:
        raise UnknownVideo(f"got video {name!r}, but the library holds no video yet; ingest some")
    titles = [row.title for row in videos.values()]
    near = get_close_matches(name, titles, n=NAMES_SHOWN, cutoff=0.3) or sorted(titles)
    raise UnknownVideo(f"got video {name!r}, which is none of the {len(videos)} here, such as {_listed(near)}")


def matching_videos(videos: Mapping[str, VideoRow], pattern: str) -> list[VideoRow]:
    """Find videos by a glob for titles or the ends of URIs, by title; none where one has exactly this name."""
    if _named(videos, pattern):
        return []
    pattern = composed(pattern)
    found = [
        row
        for row in videos.values()
        if fnmatchcase(composed(row.title), pattern) or PurePosixPath(composed(row.uri)).match(pattern)
    ]
    return sorted(found, key=lambda row: (row.title, row.video_id))


def _named(videos: Mapping[str, VideoRow], name: str) -> list[VideoRow]:
    names = {name, redact_uri(name)}  # an address is kept without what grants access to it
    exact = [row for row in videos.values() if not names.isdisjoint(_names(row))]
    alike = set(map(composed, names))
    return exact or [row for row in videos.values() if not alike.isdisjoint(map(composed, _names(row)))]


def _names(row: VideoRow) -> tuple[str, str, str]:
    return row.title, row.uri, PurePosixPath(row.uri).name


def _holding(videos: Mapping[str, VideoRow], part: str) -> list[VideoRow]:
    folded = composed(part.casefold())
    return [
        row
        for row in videos.values()
        if any(folded in composed(each.casefold()) for each in (row.title, PurePosixPath(row.uri).name))
    ]


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:NAMES_SHOWN])
    return shown + (", ..." if len(names) > NAMES_SHOWN else "")
