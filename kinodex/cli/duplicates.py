"""`kinodex duplicates`: videos that show the same, on a terminal, as JSON and as CSV."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from kinodex.cli import options
from kinodex.cli.options import JsonOption, LibraryArgument, VideoOption, WhereOption
from kinodex.index.durations import duration
from kinodex.index.terminal_text import visible
from kinodex.index.times import clock
from kinodex.jobs.errors import UsageError
from kinodex.output import console, error_console, plain_table, print_every, print_json
from kinodex.redaction import redact

if TYPE_CHECKING:
    from kinodex.index.rows import VideoRow
    from kinodex.jobs.duplicates.search import Duplicate, Progress

CSV_COLUMNS = (
    *("video_id_a", "title_a", "video_id_b", "title_b", "offset_s", "speed"),
    *("start_a_s", "end_a_s", "start_b_s", "end_b_s"),
    *("shared_s", "share_a", "share_b", "score", "likeness"),
)


def duplicates(
    library: LibraryArgument,
    video: VideoOption = None,
    where: WhereOption = None,
    min_seconds: Annotated[float, typer.Option(help="Least seconds that two videos share.")] = 5.0,
    every: Annotated[
        float,
        typer.Option(
            help="One frame each this many seconds of a video looks for others, eight or more a video. Less finds "
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
    from kinodex.cli.duplicates import show_duplicates
    from kinodex.jobs.duplicates.search import find_duplicates

    if json and csv:
        raise UsageError("got both --json and --csv; give one of them")
    opened = options.open_library(library, where)
    found = find_duplicates(
        opened, opened.ids_named(video or ()) or (), min_s=min_seconds, every_s=every, space=space, progress=_progress()
    )
    show_duplicates(found, as_json=json, as_csv=csv)


def _progress() -> Progress:
    """Say on standard error, every half a minute, what is being done."""
    offer = print_every(error_console())
    return lambda what, done, of: offer(lambda seconds: f"{what}: {done:,} of {of:,} after {seconds:,.0f} s")


def show_duplicates(found: Sequence[Duplicate], as_json: bool, as_csv: bool) -> None:
    from rich.markup import escape

    from kinodex.jobs.export.spreadsheet_cells import plain_cell

    if as_json:
        print_json([asdict(each) | {"a": _named(each.a), "b": _named(each.b)} for each in found])
        return
    if as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(CSV_COLUMNS)
        writer.writerows(map(plain_cell, row) for each in found for row in _csv_rows(each))
        return
    columns = ("video", "shows the same as", "offset", "speed", "in the first", "in the second", "length", "of each")
    table = plain_table(*columns, "score")
    for each in found:
        names = [escape(visible(row.title)) for row in (each.a, each.b)]
        figures = [duration(each.shared_s), f"{each.share_a:.0%} / {each.share_b:.0%}", f"{each.score:.2f}"]
        shown: tuple[float, float] | None = None
        for part in each.ranges:
            place = ["", ""]
            if shown != (part.offset_s, part.speed):
                place = [f"{'+' if part.offset_s >= 0 else '-'}{clock(abs(part.offset_s))}", f"{part.speed:.4g}"]
            first = f"{clock(max(part.start_a_s, 0.0))} to {clock(part.end_a_s)}"
            second = f"{clock(max(part.start_b_s, 0.0))} to {clock(part.end_b_s)}"
            table.add_row(*(names if shown is None else ["", ""]), *place, first, second, *(figures * (shown is None)))
            shown = part.offset_s, part.speed
    console().print(table if found else "no two videos show the same")


def _named(row: VideoRow) -> dict[str, object]:
    return {name: getattr(row, name) for name in ("video_id", "title", "uri", "duration_s")}


def _csv_rows(each: Duplicate) -> list[tuple[object, ...]]:
    videos = (each.a.video_id, redact(each.a.title), each.b.video_id, redact(each.b.title))
    figures = (each.shared_s, each.share_a, each.share_b, each.score, each.likeness)
    return [
        (
            *videos,
            *(round(value, 4) for value in (part.offset_s, part.speed)),
            *(round(value, 3) for value in (part.start_a_s, part.end_a_s, part.start_b_s, part.end_b_s)),
            *(round(value, 4) for value in figures),
        )
        for part in each.ranges
    ]
