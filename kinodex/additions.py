"""Additions to a library as users of the front door make them: stages, extracts and functions of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from kinodex.index.library import Library
from kinodex.jobs.add.run import add
from kinodex.jobs.add.settings import read_settings
from kinodex.jobs.add.stage import Written
from kinodex.jobs.add.stages import Extracts, find_stage
from kinodex.jobs.errors import UsageError

if TYPE_CHECKING:
    from kinodex.index.library import LibraryReader
    from kinodex.jobs.add.run import AddReport, VideoOutcome
    from kinodex.jobs.add.stage import Stage
    from kinodex.jobs.add.stages import Map

    Watch = Callable[[int, int, VideoOutcome], None]


def made_stage(stage: str | Stage, settings: Mapping[str, Any]) -> Stage:
    """Make a stage of its name and settings; raises UsageError for settings beside a stage that has its own."""
    if isinstance(stage, str):
        return read_settings(find_stage(stage), stage, settings)
    if settings:
        raise UsageError(f"got {', '.join(settings)} beside a stage that has its settings; leave them out")
    return stage


def add_stage(reader: LibraryReader, stage: Stage, videos: Sequence[str], where: str | None, watch: Watch) -> AddReport:
    """Add the results of a stage to these videos, or to all; see `kinodex.Library.add`."""
    tables, ids = _to_fill(reader, videos, where, frames_needed=stage.frames_needed)
    if isinstance(stage, Written) and stage.batch_api:
        from kinodex.jobs.add.batch_api import add_by_batches

        return add_by_batches(tables, stage, ids, watch, lambda said: None)
    return add(tables, stage, ids, watch)


def add_extract(
    reader: LibraryReader, settings: Mapping[str, Any], videos: Sequence[str], where: str | None
) -> tuple[str, list[str] | None]:
    """Fill in an extract; returns the key of its version, and the ids of the videos, None for all."""
    stage = read_settings(Extracts, "extracts", settings)
    tables, ids = _to_fill(reader, videos, where)
    add(tables, stage, ids)
    return stage.key, ids


def add_map(
    reader: LibraryReader,
    stage: Map,
    videos: Sequence[str],
    where: str | None,
    watch: Watch,
    *,
    ray: bool | str,
    workers: int | None,
) -> AddReport:
    """Run a function of the user's own over these videos, or over all; `ray` is True, or the address of a cluster."""
    tables, ids = _to_fill(reader, videos, where)
    with ExitStack() as stack:
        executor = None
        if ray:
            from kinodex.jobs.add.ray import ray_executor

            executor = stack.enter_context(ray_executor(workers, ray if isinstance(ray, str) else None))
        return add(tables, stage, ids, watch, executor)


def _to_fill(
    reader: LibraryReader, videos: Sequence[str], where: str | None, *, frames_needed: bool = False
) -> tuple[Library, list[str] | None]:
    """Return the library for one that writes, and the ids of these videos, of those that are seen here; None for all.

    With `frames_needed` videos that were imported as text are left out.
    """
    tables = Library.open(reader.uri)
    chosen = tables.where(reader.condition).select(videos, where)
    if chosen is None and frames_needed and not all(row.frames for row in tables.videos()):
        chosen = tables.videos()
    left = None if chosen is None else [row for row in chosen if row.frames or not frames_needed]
    return tables, None if left is None else [row.video_id for row in left]
