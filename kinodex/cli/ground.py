"""`kinodex ground`: find the ranges of time at which something happens."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kinodex.cli import model_options, options
from kinodex.cli.from_models import with_groups
from kinodex.cli.options import JsonOption, LibraryArgument
from kinodex.cli.search import note_invalid, show_forecast
from kinodex.index.terminal_text import visible, visible_lines
from kinodex.index.times import clock
from kinodex.jobs.errors import UsageError
from kinodex.output import console, plain_table, print_json, say
from kinodex.requests import Ground

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kinodex.index.library import Library
    from kinodex.jobs.export.joined_clips import JoinedClip
    from kinodex.jobs.export.moments import Moment
    from kinodex.jobs.grounding.result import Grounding


@with_groups
def ground(
    library: LibraryArgument,
    request: Ground,
    looking: model_options.Looking = model_options.LOOKING,
    space: model_options.SpaceOption = None,
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
    from kinodex.jobs.export.moment_rule import AS_FOUND, PLAYED, MomentRule
    from kinodex.jobs.grounding.result import arranged_by

    choice = looking.choice(used=request.agent is not None or request.verify > 0)
    _check_options(request, looking)
    _check_files(csv, clip)
    reader = options.open_library(library)
    desk = Desk(reader, choice, space=space)
    if looking.dry_run:
        show_forecast(desk.forecast(request), as_json=json)
        return
    if choice is not None:
        model_options.announce(choice)
    found = desk.ground(request)
    note_invalid(found.looked)
    is_as_found = MomentRule(request.pad_s, request.join_s, request.snap) == AS_FOUND
    watched = arranged_by(PLAYED, found, reader.segments) if is_as_found else found
    clips = _export(reader, found, watched.ranges, csv, clip)
    _show(found, clips, as_json=json)


def _check_options(request: Ground, looking: model_options.Looking) -> None:
    """Refuse options that would do nothing."""
    if request.agent is not None and (request.verify or looking.dry_run):
        raise UsageError(
            "got --verify or --dry-run with --agent, whose model looks by itself; leave one of them out (`kinodex ask "
            "--dry-run` says what an agent costs)"
        )


def _check_files(csv: Path | None, clip: Path | None) -> None:
    """Refuse files that would be overwritten, before anything is searched."""
    if csv is not None:
        from kinodex.jobs.export.text_files import check_free

        check_free(csv, overwrite=False)
    if clip is not None:
        from kinodex.jobs.export.joined_clips import check_clip_path

        check_clip_path(clip)


def _export(
    library: Library, found: Grounding, watched: Sequence[Moment], csv: Path | None, clip: Path | None
) -> Sequence[JoinedClip]:
    """Write the ranges that were answered as a table and as films; nothing where there are none."""
    if csv is not None:
        from kinodex.jobs.export.tables import csv_text
        from kinodex.jobs.export.text_files import write_text

        write_text(str(csv), csv_text(found.ranges))
    if clip is None or not found.ranges:
        return []
    from kinodex.jobs.export.joined_clips import join_clips

    return join_clips(library, watched, clip)


def _show(found: Grounding, clips: Sequence[JoinedClip], as_json: bool) -> None:
    from rich.markup import escape

    from kinodex.cli.hit_tables import basis_cells, basis_heads
    from kinodex.jobs.grounding.result import as_json as to_json

    if as_json:
        files = [{"path": str(each.path), "title": each.title, "error": each.error} for each in clips]
        print_json(to_json(found) | {"clips": files})
        return
    out = console()
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
