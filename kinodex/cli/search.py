"""`kinodex search`, `kinodex duplicates` and `kinodex ground`: find moments, videos that show the same, and ranges."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kinodex.cli import options
from kinodex.cli.options import FromOption, JsonOption, LibraryArgument, ToOption, VideoOption
from kinodex.index.text import visible, visible_lines
from kinodex.jobs.errors import UsageError
from kinodex.output import clock, console, error_console, plain_table, print_every, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kinodex.index.library import Library
    from kinodex.jobs.duplicates import Progress
    from kinodex.jobs.export.media import JoinedClip
    from kinodex.jobs.export.moments import Moment
    from kinodex.jobs.ground import Grounding


def search(
    library: LibraryArgument,
    query: Annotated[str, typer.Argument(help="What to look for, in words.")] = "",
    image: Annotated[
        Path | None, typer.Option(help="Look for what is in this picture, instead of the words or beside them.")
    ] = None,
    video: VideoOption = None,
    from_s: FromOption = None,
    to_s: ToOption = None,
    k: Annotated[int, typer.Option("-k", min=1, max=1000, help="Number of hits.")] = 10,
    min_gap: Annotated[float, typer.Option(min=0.0, help="Least seconds between hits of one video.")] = 2.0,
    where: Annotated[
        str,
        typer.Option(
            "--in",
            help="Where to look: pictures (by meaning), words (said, on screen and captions, by words, and by meaning "
            "after `kinodex add sentences`), speech (by words), screen-text (by words, typos forgiven), captions (by "
            "words and meaning), chapters (by titles and summaries), detections (by label), or all: but these two.",
        ),
    ] = "all",
    label: Annotated[str | None, typer.Option(help="Only detections of this label.")] = None,
    min_score: Annotated[float, typer.Option(min=0.0, max=1.0, help="Least score of a detection.")] = 0.0,
    space: Annotated[
        str | None, typer.Option(help="Search pictures in this space of the library, by its name or digest.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Find moments by words, by a picture, or by detections."""
    from kinodex.cli.tables import show_hits
    from kinodex.find import Finder, Query
    from kinodex.index.library import Library

    opened = Library.open(library)
    where = _where(where, query, image, label, space)
    finder = Finder(opened, space)
    if finder.missing(where):
        what = "text on screen" if where == "screen-text" else where
        raise UsageError(f"{opened.uri} has no {what}; `kinodex add {where}` makes it from what the library holds")
    asked = Query(label or query, image, where, video or (), from_s, to_s, k, min_gap, min_score)
    hits = finder.find(asked)
    if opened.sentences.missing:
        print(f"note: lines are found by words alone: {opened.sentences.missing}", file=sys.stderr)
    show_hits(hits, opened, as_json=json)


def _where(where: str, query: str, image: Path | None, label: str | None, space: str | None) -> str:
    """Where to look; raises UsageError for options that do not fit together."""
    from kinodex.find import known_where

    where = known_where(where)
    if label is not None and where == "all":
        where = "detections"
    if (image is not None or space is not None) and where not in ("all", "pictures"):
        raise UsageError(f"got --in {where} with --image or --space, which are for pictures; leave one of them out")
    if label is not None and where != "detections":
        raise UsageError(f"got --label with a search in {where}; only detections have labels")
    if image is None and not query.strip() and not (label or "").strip():
        raise UsageError("got an empty query; give some words to look for, --label WORD, or --image FILE")
    return where


# `kinodex duplicates`: videos that show the same, whole or in part.


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
    from kinodex.cli.show import show_duplicates
    from kinodex.index.library import Library
    from kinodex.jobs.duplicates import find_duplicates

    if json and csv:
        raise UsageError("got both --json and --csv; give one of them")
    opened = Library.open(library)
    chosen = tuple(row.video_id for row in opened.videos_named(video)) if video else ()
    found = find_duplicates(opened, chosen, min_s=min_seconds, every_s=every, space=space, progress=_progress())
    show_duplicates(found, as_json=json, as_csv=csv)


def _progress() -> Progress:
    """Say on standard error, every half a minute, what is being done."""
    offer = print_every(error_console())
    return lambda what, done, of: offer(lambda seconds: f"{what}: {done:,} of {of:,} after {seconds:,.0f} s")


# `kinodex ground`: the ranges of time that fit a text best, and what may be said of them.


def ground(
    library: LibraryArgument,
    text: Annotated[str, typer.Argument(help='What happens, in words: "the goal is scored".')],
    video: VideoOption = None,
    k: Annotated[int, typer.Option("-k", min=1, max=1000, help="Number of ranges.")] = 5,
    where: Annotated[
        str, typer.Option("--in", help="Where to look: pictures, words (said, on screen and captions), or all.")
    ] = "all",
    agent: Annotated[
        str | None, typer.Option(help="Ask this agent, and give the evidence of its answer: a name, or FILE.py.")
    ] = None,
    model: options.ModelOption = "builtin",
    base_url: options.BaseUrlOption = None,
    models: options.ModelsOption = None,
    max_frames: options.MaxFramesOption = None,
    cache: options.CacheOption = True,
    space: options.SpaceOption = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE.csv", help="Write the ranges as a table.")] = None,
    clip: Annotated[
        Path | None,
        typer.Option(metavar="FILE.mp4", help="Cut the ranges out of the video's file; of several: FILE-1.mp4, ..."),
    ] = None,
    pad: options.PadOption = None,
    join: options.JoinOption = None,
    snap: options.SnapOption = False,
    json: JsonOption = False,
) -> None:
    """Find the ranges of time that fit a text best, by search alone or with an agent, and say on what basis.

    Only an agent, whose model looked, says that it is there or not. Exits with 0 in either case.
    """
    import kinodex
    from kinodex.agent.limits import Budget
    from kinodex.find import ground_where
    from kinodex.index.library import Library
    from kinodex.jobs.export.moments import AS_FOUND, PLAYED, MomentRule
    from kinodex.jobs.ground import arranged_by
    from kinodex.jobs.models import ModelChoice

    _check_options(agent, model != "builtin" or bool(models or base_url or max_frames), ground_where(where))
    _check_files(csv, clip)
    opened = kinodex.open(library, space=space)
    asking: dict[str, Any] = {}
    if agent is not None:
        choice = ModelChoice(model, base_url, models, cache=cache)
        options.announce(choice)
        asking = {"agent": agent, "model": choice, "budget": Budget(None, max_frames)}
    by_rule: dict[str, Any] = {"pad_s": pad or 0.0, "join_s": join, "snap": snap}
    found = opened.ground(text, videos=video or (), k=k, where=where, **by_rule, **asking)
    reader = Library.open(library)
    watched = found if MomentRule(**by_rule) != AS_FOUND else arranged_by(PLAYED, found, reader.segments)
    clips = _export(reader, found, watched.ranges, csv, clip)
    _show(found, clips, as_json=json)


def _check_options(agent: str | None, of_agents: bool, where: str) -> None:
    """Refuse options that would do nothing."""
    if agent is None and of_agents:
        raise UsageError(
            "got --model, --models, --base-url or --max-frames without --agent; name the agent they are for"
        )
    if agent is not None and where != "both":
        raise UsageError("got --in with --agent, which decides by itself; leave one of them out")


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
        print(found.noise)
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
        print(f"no clip: {visible_lines(film.error)}" if film.error else f"clip  {visible(str(film.path))}")
