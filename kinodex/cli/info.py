"""`kinodex info`: look at a library."""

from __future__ import annotations

from typing import Annotated

import typer

from kinodex.cli.options import JsonOption, LibraryArgument, WhereOption, open_library


def info(
    library: LibraryArgument,
    where: WhereOption = None,
    limit: Annotated[int, typer.Option(min=0, help="At most this many videos and this many failures; 0: all.")] = 100,
    runs: Annotated[
        bool, typer.Option("--runs", help="Show the runs that wrote it: results, durations, the time of each stage.")
    ] = False,
    run: Annotated[str | None, typer.Option(help="Show this run: its id, or its first digits.")] = None,
    json: JsonOption = False,
) -> None:
    """Show a library: videos, counts, columns, spaces, settings, failures; or the runs that wrote it."""
    opened = open_library(library, where)
    if runs or run is not None:
        from kinodex.cli.runs import show_runs

        show_runs(opened, run, as_json=json)
    else:
        from kinodex.cli.library_tables import show_library

        show_library(opened, limit or None, as_json=json)
