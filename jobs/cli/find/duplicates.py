"""`kinodex duplicates`: videos that show the same, whole or in part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jobs.cli.options.library import JsonOption, LibraryArgument, VideoOption

if TYPE_CHECKING:
    from jobs.duplicates.find import Progress


def duplicates(
    library: LibraryArgument,
    video: VideoOption = None,
    min_seconds: Annotated[float, typer.Option(help="Least seconds that two videos share.")] = 5.0,
    every: Annotated[
        float,
        typer.Option(
            help="One frame each so many seconds of a video looks for others, eight or more a video. Less finds "
            "shorter shared parts of long videos, and takes longer."
        ),
    ] = 30.0,
    space: Annotated[str | None, typer.Option(help="Compare in this space of the library, by name or digest.")] = None,
    json: JsonOption = False,
    csv: Annotated[
        bool, typer.Option("--csv", help="Print CSV instead of a table, a row for each shared range.")
    ] = False,
) -> None:
    """Find videos that show the same: re-encoded, cut, letterboxed or moved in time. --video: only pairs with it."""
    from index.library import Library
    from jobs.console.duplicate_table import show_duplicates
    from jobs.duplicates.find import find_duplicates
    from jobs.errors import UsageError

    if json and csv:
        raise UsageError("got both --json and --csv; give one of them")
    opened = Library.open(library)
    chosen = tuple(row.video_id for row in opened.videos_named(video)) if video else ()
    found = find_duplicates(opened, chosen, min_s=min_seconds, every_s=every, space=space, progress=_progress())
    show_duplicates(found, as_json=json, as_csv=csv)


def _progress() -> Progress:
    """Say on standard error, every half a minute, what is being done."""
    from jobs.console.output import error_console, print_every

    offer = print_every(error_console())
    return lambda what, done, of: offer(lambda seconds: f"{what}: {done:,} of {of:,} after {seconds:,.0f} s")
