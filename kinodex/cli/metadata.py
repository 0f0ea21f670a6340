"""`kinodex set metadata`: columns about the videos of a library that is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

import typer

from kinodex.cli.meant import Group
from kinodex.cli.options import JsonOption, LibraryArgument, VideoOption, WhereOption, open_library
from kinodex.index.durations import counted
from kinodex.index.terminal_text import visible
from kinodex.jobs.errors import OK, SOME_FAILED, UsageError
from kinodex.output import console, print_json

set_app = typer.Typer(cls=Group, no_args_is_help=True, help="Set columns about the videos of a library, for --where.")


@set_app.callback()
def _set() -> None:
    """Keep `metadata` a command of its own: a group of one command would be that command."""


@set_app.command()
def metadata(
    library: LibraryArgument,
    table: Annotated[
        list[str] | None,
        typer.Argument(help="Tables (.csv, .tsv, .jsonl, .parquet): a column names videos, the others are set."),
    ] = None,
    path_pattern: Annotated[str | None, typer.Option(help="Columns from paths, such as '{camera}/{day}/{_}'.")] = None,
    from_files: Annotated[
        bool, typer.Option("--from-files", help="Columns from the tags of the files, and .info.json beside them.")
    ] = False,
    drop: Annotated[list[str] | None, typer.Option(help="Remove this column first. May be repeated.")] = None,
    video: VideoOption = None,
    where: WhereOption = None,
    json: JsonOption = False,
) -> None:
    """Set columns of the videos, for --where: from tables, paths and tags of files. Nothing is ingested again."""
    from kinodex.jobs.metadata.input import read_metadata
    from kinodex.jobs.metadata.update import set_metadata

    opened = open_library(library)
    given = read_metadata(table or [], path_pattern)
    if not (given or from_files or drop):
        raise UsageError("got nothing to set; give tables, --path-pattern, --from-files or --drop")
    chosen = opened.select(video or (), where)
    if drop:
        opened.metadata.drop(drop)
    report = set_metadata(opened, given, chosen, from_files=from_files)
    if json:
        print_json(asdict(report))
    else:
        show_metadata(asdict(report))
    raise typer.Exit(SOME_FAILED if report.unmatched or report.ambiguous or report.problems else OK)


ROWS_NAMED = 3


def show_metadata(report: Mapping[str, Any]) -> None:
    from rich.markup import escape

    out = console()
    columns = ", ".join(f"{name} {kind}" for name, kind in report["columns"].items())
    out.print(f"metadata of {counted(report['videos'], 'video')}; columns: {columns or 'none'}", soft_wrap=True)
    for name, what in (
        ("unmatched", "rows name no video"),
        ("ambiguous", "rows name several videos"),
        ("problems", "files could not be read"),
    ):
        if rows := report[name]:
            more = f" and {len(rows) - ROWS_NAMED:,} more" if len(rows) > ROWS_NAMED else ""
            out.print(escape(visible(f"{len(rows):,} {what}: {', '.join(rows[:ROWS_NAMED])}{more}")), soft_wrap=True)
