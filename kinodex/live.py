"""Watch a source that grows: its frames go into a library as they come."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kinodex.arguments import library_place

if TYPE_CHECKING:
    from kinodex.jobs.live.source import NewRows
    from kinodex.jobs.standing_queries import StandingQueries


def watch_live(
    address: str,
    library: str | Path,
    *,
    name: str = "",
    queries: StandingQueries | None = None,
    stop: Callable[[], bool] = lambda: False,
    on_rows: Callable[[NewRows], None] = lambda rows: None,
    on_wait: Callable[[str], None] = lambda reason: None,
    part_s: float = 3600.0,
    stall_s: float = 15.0,
    **settings: Any,
) -> None:
    """Put the frames of a source that grows into a library as they come, until it ends or `stop` says so.

    The source is a file that is being written, the address of an HLS playlist, or an rtsp:// address. See
    `jobs.live.watch.watch_live`; `settings` are those of `kinodex.ingest`, such as `space="photo"`, `fps=2.0`.
    """
    from kinodex.jobs.ingest.config import held_settings, resolve
    from kinodex.jobs.live.source import LiveSource
    from kinodex.jobs.live.watch import watch_live as follow

    live = LiveSource(address, name, stall_s=stall_s, part_s=part_s)
    uri = library_place(library)
    config = resolve(settings, {}, {}, None, held_settings(uri), caller="watch").config
    follow(config, live, uri, stop=stop, on_rows=on_rows, on_wait=on_wait, queries=queries)
