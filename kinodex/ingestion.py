"""Whole collections of videos, indexed into a library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kinodex.arguments import library_place
from kinodex.jobs.errors import UsageError

if TYPE_CHECKING:
    from kinodex.jobs.ingest.reports import IngestReport, Progress


def ingest(
    *sources: str | Path | Sequence[str | Path],
    library: str | Path,
    on_progress: Callable[[Progress], None] | None = None,
    **settings: Any,
) -> IngestReport:
    """Index videos into a library, as `kinodex ingest` does; run again, it does only what is new.

    `sources` are files, folders, globs and fsspec URIs, or lists of them. `settings` are those of `kinodex ingest
    --print-config`, such as `space="photo"`, `fps=2.0`, `ray=True`; a library that exists gives the defaults of what
    its rows depend on. The environment is not read. A video that cannot be read is an outcome in the report, not an
    exception. In a notebook a bar shows the progress unless `on_progress` does.

    Raises `UsageError` for settings, `SourceError` for sources and `LibraryError` for a library that cannot be had.
    """
    from kinodex.jobs.ingest.config import held_settings, resolve
    from kinodex.jobs.ingest.run import run_ingest
    from kinodex.notebook_progress import progress_bar
    from kinodex.pipeline.source_list import SourceList
    from kinodex.pipeline.sources import list_sources

    if not sources:
        raise UsageError("got nothing to index; give files, folders, globs or URIs")
    uri = library_place(library)
    config = resolve(settings, {}, {}, None, held_settings(uri), caller="ingest").config
    places = [each for source in sources for each in ([source] if isinstance(source, str | Path) else source)]
    found = SourceList(list_sources([str(place) for place in places]))
    with progress_bar() if on_progress is None else nullcontext(on_progress) as show:
        return run_ingest(config, found, uri, show)
