"""`kinodex search`, `duplicates`, `ground` and `sql`: find moments, videos that show the same, ranges, and rows."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kinodex.cli import options
from kinodex.cli.from_models import with_groups
from kinodex.cli.options import JsonOption, LibraryArgument, VideoOption, WhereOption
from kinodex.index.durations import counted
from kinodex.index.kinds import ALL
from kinodex.index.terminal_text import visible, visible_lines
from kinodex.index.times import clock
from kinodex.jobs.errors import UsageError
from kinodex.output import console, error_console, plain_table, print_every, print_json, say, tell
from kinodex.requests import Find, Ground

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kinodex.index.library import Library
    from kinodex.jobs.costs import Forecast
    from kinodex.jobs.duplicates import Progress
    from kinodex.jobs.export.media import JoinedClip
    from kinodex.jobs.export.moments import Moment
    from kinodex.jobs.ground import Grounding
    from kinodex.jobs.verify import Looked


@with_groups
def search(
    library: LibraryArgument,
    request: Find,
    image: Annotated[
        Path | None, typer.Option(help="Look for what is in this picture, instead of the words or beside them.")
    ] = None,
    label: Annotated[str | None, typer.Option(help="Only detections of this label.")] = None,
    space: Annotated[
        str | None, typer.Option(help="Search frames in this space of the library, by its name or digest.")
    ] = None,
    looking: options.Looking = options.LOOKING,
    json: JsonOption = False,
) -> None:
    """Find moments by words, by a picture, or by detections; and with --verify say of the first if it is there."""
    from kinodex.cli.tables import show_hits
    from kinodex.desk import Desk

    choice = looking.choice(used=request.verify > 0)
    request = _checked(request, image, label, space)
    desk = Desk(options.open_library(library), choice, space=space)
    if looking.dry_run:
        _show_forecast(desk.forecast(request), as_json=json)
        return
    if choice is not None:
        options.announce(choice)
    found = desk.find(request, image)
    for note in found.notes:
        tell(f"note: {note}")
    _note_invalid(found.looked)
    show_hits(found.hits, desk.library, as_json=json)


def _checked(request: Find, image: Path | None, label: str | None, space: str | None) -> Find:
    """The request with the label of detections, if one is given; raises UsageError for options that do not fit."""
    if label is not None:
        if request.in_ not in (ALL, "detections"):
            raise UsageError(f"got --label with a search in {request.in_}; only detections have labels")
        request = request.model_copy(update={"query": label, "in_": "detections"})
    if space is not None and request.in_ not in (ALL, "frames"):
        raise UsageError(f"got --in {request.in_} with --space, which is for frames; leave one of them out")
    if image is None and request.like is None and not request.query.strip():
        raise UsageError("got an empty query; give some words to look for, --label WORD, or --image FILE")
    return request


def _show_forecast(costs: Sequence[Forecast], as_json: bool) -> None:
    from kinodex.jobs.costs import table

    if as_json:
        print_json(asdict(costs[0]))
    else:
        say(table(costs, "moments"))


def _note_invalid(looked: Looked | None) -> None:
    if looked is not None and looked.invalid:
        tell(f"note: {counted(looked.calls, 'call')} of the model, {looked.invalid} without a usable reply")


def duplicates(
    library: LibraryArgument,
    video: VideoOption = None,
    where: WhereOption = None,
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
    from kinodex.cli.show import show_duplicates
    from kinodex.jobs.duplicates import find_duplicates

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


@with_groups
def ground(
    library: LibraryArgument,
    request: Ground,
    looking: options.Looking = options.LOOKING,
    space: options.SpaceOption = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE.csv", help="Write the ranges as a table.")] = None,
    clip: Annotated[
        Path | None,
        typer.Option(metavar="FILE.mp4", help="Cut the ranges out of the video's file; of several: FILE-1.mp4, ..."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Find the ranges of time that fit a text best, by a search or by an agent, and say on what basis.

    Only a model that looked (--verify, or an agent's) says that it is there or not. Exits with 0 in either case.
    """
    from kinodex.desk import Desk
    from kinodex.jobs.export.moments import AS_FOUND, PLAYED, MomentRule
    from kinodex.jobs.ground import arranged_by

    choice = looking.choice(used=request.agent is not None or request.verify > 0)
    _check_options(request, looking)
    _check_files(csv, clip)
    reader = options.open_library(library)
    desk = Desk(reader, choice, space=space)
    if looking.dry_run:
        _show_forecast(desk.forecast(request), as_json=json)
        return
    if choice is not None:
        options.announce(choice)
    found = desk.ground(request)
    _note_invalid(found.looked)
    is_as_found = MomentRule(request.pad_s, request.join_s, request.snap) == AS_FOUND
    watched = arranged_by(PLAYED, found, reader.segments) if is_as_found else found
    clips = _export(reader, found, watched.ranges, csv, clip)
    _show(found, clips, as_json=json)


def _check_options(request: Ground, looking: options.Looking) -> None:
    """Refuse options that would do nothing."""
    if request.agent is not None and (request.verify or looking.dry_run):
        raise UsageError(
            "got --verify or --dry-run with --agent, whose model looks by itself; leave one of them out (`kinodex ask "
            "--dry-run` says what an agent costs)"
        )


def _check_files(csv: Path | None, clip: Path | None) -> None:
    """Refuse files that would be overwritten, before anything is searched."""
    if csv is not None:
        from kinodex.jobs.export.texts import check_free

        check_free(csv, overwrite=False)
    if clip is not None:
        from kinodex.jobs.export.media import check_clip_path

        check_clip_path(clip)


def _export(
    library: Library, found: Grounding, watched: Sequence[Moment], csv: Path | None, clip: Path | None
) -> Sequence[JoinedClip]:
    """Write the ranges that were answered as a table and as films; nothing where there are none."""
    if csv is not None:
        from kinodex.jobs.export.texts import csv_text, write_text

        write_text(str(csv), csv_text(found.ranges))
    if clip is None or not found.ranges:
        return []
    from kinodex.jobs.export.media import join_clips

    return join_clips(library, watched, clip)


def _show(found: Grounding, clips: Sequence[JoinedClip], as_json: bool) -> None:
    from rich.markup import escape

    from kinodex.cli.tables import basis_cells, basis_heads
    from kinodex.jobs.ground import as_json as to_json

    if as_json:
        files = [{"path": str(each.path), "title": each.title, "error": each.error} for each in clips]
        print_json(to_json(found) | {"clips": files})
        return
    out = console()
    if found.noise:
        say(found.noise)
    out.print(visible_lines(found.claim), soft_wrap=True, markup=False)
    table = plain_table("from", "to", *basis_heads(found.candidates), "score", "video", "found in")
    for each in found.candidates:
        score = "" if each.score is None else f"{each.score:.3f}"
        times = clock(each.start_s), clock(each.end_s)
        table.add_row(
            *times, *basis_cells(each, found.candidates), score, escape(visible(each.video.title)), each.source
        )
    if found.candidates:
        out.print(table)
    for film in clips:
        say(f"no clip: {visible_lines(film.error)}" if film.error else f"clip  {visible(str(film.path))}")


def sql(
    library: options.LibraryArgument,
    query: Annotated[str, typer.Argument(metavar="SELECT", help="One SELECT, in DuckDB's SQL; - reads it from stdin.")],
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    json: options.JsonOption = False,
) -> None:
    """Run SQL over a library: videos, frames, segments, lines, detections, chapters, additions, failures, extracts.

    Nothing is written, and nothing but the library is read. Rows with video_id, start_s and end_s are moments:
    `kinodex export clips LIBRARY FOLDER --from-sql SELECT`.
    """
    from kinodex.index.sql import query as run_query

    rows = run_query(options.open_library(library), sys.stdin.read() if query == "-" else query).to_arrow_table()
    if json:
        print_json(rows.to_pylist())
    elif csv:
        from pyarrow.csv import write_csv

        sys.stdout.flush()
        write_csv(rows, sys.stdout.buffer)
    else:
        table = plain_table(*rows.column_names)
        for row in rows.to_pylist():
            table.add_row(*("" if value is None else visible(str(value)) for value in row.values()))
        console().print(table, markup=False)
        say(f"{rows.num_rows:,} rows")
