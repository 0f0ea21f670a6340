"""`kinodex search`, `duplicates`, `ground` and `sql`: find moments, videos that show the same, ranges, and rows."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kinodex.cli import options
from kinodex.cli.options import FromOption, JsonOption, LibraryArgument, ToOption, VideoOption, WhereOption
from kinodex.index.text import counted, visible, visible_lines
from kinodex.index.times import clock
from kinodex.jobs.errors import UsageError
from kinodex.output import console, error_console, plain_table, print_every, print_json, say, tell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kinodex.index.library import Library
    from kinodex.index.rows import Hit
    from kinodex.jobs.duplicates import Progress
    from kinodex.jobs.export.media import JoinedClip
    from kinodex.jobs.export.moments import Moment
    from kinodex.jobs.ground import Grounding
    from kinodex.jobs.models import ModelChoice
    from kinodex.jobs.verify import Looked


@options.with_groups
def search(
    library: LibraryArgument,
    query: Annotated[str, typer.Argument(help="What to look for, in words.")] = "",
    image: Annotated[
        Path | None, typer.Option(help="Look for what is in this picture, instead of the words or beside them.")
    ] = None,
    video: VideoOption = None,
    where: WhereOption = None,
    from_s: FromOption = None,
    to_s: ToOption = None,
    k: Annotated[int, typer.Option("-k", min=1, max=1000, help="Number of hits.")] = 10,
    min_gap: Annotated[float, typer.Option(min=0.0, help="Least seconds between hits of one video.")] = 2.0,
    place: Annotated[
        str,
        typer.Option(
            "--in",
            help="Where to look: pictures (by meaning), clips (windows of some seconds, by meaning), words (said, on "
            "screen and captions, by words, and by meaning after `kinodex add sentences`), speech (by words), "
            "screen-text (by words, typos forgiven), captions (by words and meaning), chapters (by titles and "
            "summaries), detections (by label), an extract by its name, or all: pictures, clips and words.",
        ),
    ] = "all",
    label: Annotated[str | None, typer.Option(help="Only detections of this label.")] = None,
    min_score: Annotated[float, typer.Option(min=0.0, max=1.0, help="Least score of a detection.")] = 0.0,
    space: Annotated[
        str | None, typer.Option(help="Search pictures in this space of the library, by its name or digest.")
    ] = None,
    rerank: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Order hits by their words, by the reranker at http://HOST:PORT/rerank."),
    ] = None,
    looking: options.Looking = options.LOOKING,
    json: JsonOption = False,
) -> None:
    """Find moments by words, by a picture, or by detections; and with --verify say of the first if it is there."""
    from kinodex.cli.tables import show_hits
    from kinodex.find import Finder, Query

    choice = looking.choice(used=looking.verify is not None)
    opened = options.open_library(library, where)
    place = _place(opened, place, query, image, label, space)
    finder = Finder(opened, space)
    if finder.missing(place):
        what = "text on screen" if place == "screen-text" else place
        raise UsageError(f"{opened.uri} has no {what}; `kinodex add {place}` makes it from what the library holds")
    asked = Query(label or query, image, place, video or (), from_s, to_s, k, min_gap, min_score)
    hits = finder.find(asked, rerank)
    if rerank and hits and all(hit.reranked is None for hit in hits):
        tell("note: no hit has words for the reranker to compare: their order is as before")
    if finder.clips_missing:
        tell(f"note: clips are not searched: {finder.clips_missing}")
    if opened.sentences.missing:
        tell(f"note: lines are found by words alone: {opened.sentences.missing}")
    if choice is not None and looking.verify is not None:
        if looking.dry_run:
            _show_forecast(opened, asked.words, hits, looking.verify, choice, as_json=json)
            return
        from kinodex.jobs.verify import verified

        options.announce(choice)
        hits, looked = verified(opened, asked.words, hits, looking.verify, choice)
        _note_invalid(looked)
    show_hits(hits, opened, as_json=json)


def _show_forecast(
    library: Library, text: str, found: Sequence[Hit] | Sequence[Moment], count: int, choice: ModelChoice, as_json: bool
) -> None:
    from kinodex.jobs.costs import table
    from kinodex.jobs.verify import forecast_verdicts

    forecast = forecast_verdicts(library, text, found, count, choice)
    if as_json:
        print_json(asdict(forecast))
    else:
        say(table([forecast], "moments"))


def _note_invalid(looked: Looked) -> None:
    if looked.invalid:
        tell(f"note: {counted(looked.calls, 'call')} of the model, {looked.invalid} without a usable reply")


def _place(library: Library, place: str, query: str, image: Path | None, label: str | None, space: str | None) -> str:
    """Where to look; raises UsageError for options that do not fit together."""
    from kinodex.find import FOR_PICTURES, known_where

    place = known_where(place, library)
    if label is not None and place == "all":
        place = "detections"
    if image is not None and place not in FOR_PICTURES:
        raise UsageError(
            f"got --in {place} with --image, which is for {', '.join(FOR_PICTURES)}; leave one of them out"
        )
    if space is not None and place not in ("all", "pictures"):
        raise UsageError(f"got --in {place} with --space, which is for pictures; leave one of them out")
    if label is not None and place != "detections":
        raise UsageError(f"got --label with a search in {place}; only detections have labels")
    if image is None and not query.strip() and not (label or "").strip():
        raise UsageError("got an empty query; give some words to look for, --label WORD, or --image FILE")
    return place


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


@options.with_groups
def ground(
    library: LibraryArgument,
    text: Annotated[str, typer.Argument(help='What happens, in words: "the goal is scored".')],
    video: VideoOption = None,
    where: WhereOption = None,
    k: Annotated[int, typer.Option("-k", min=1, max=1000, help="Number of ranges.")] = 5,
    place: Annotated[
        str, typer.Option("--in", help="Where to look: pictures, words (said, on screen and captions), or all.")
    ] = "all",
    agent: Annotated[
        str | None, typer.Option(help="Ask this agent, and give the evidence of its answer: a name, or FILE.py.")
    ] = None,
    looking: options.Looking = options.LOOKING,
    max_frames: options.MaxFramesOption = None,
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

    Only a model that looked (--verify, or an agent's) says that it is there or not. Exits with 0 in either case.
    """
    import kinodex
    from kinodex.agent.limits import Budget
    from kinodex.find import ground_where
    from kinodex.jobs.export.moments import AS_FOUND, PLAYED, MomentRule
    from kinodex.jobs.ground import arranged_by, with_verdicts

    choice = looking.choice(used=agent is not None or looking.verify is not None)
    _check_options(agent, looking, max_frames, ground_where(place))
    _check_files(csv, clip)
    opened = kinodex.open(library, space=space).where(where)
    asking: dict[str, Any] = {}
    if choice is not None and not looking.dry_run:
        options.announce(choice)
    if agent is not None:
        asking = {"agent": agent, "model": choice, "budget": Budget(None, max_frames)}
    by_rule: dict[str, Any] = {"pad_s": pad or 0.0, "join_s": join, "snap": snap}
    found = opened.ground(text, videos=video or (), k=k, where=place, **by_rule, **asking)
    reader = options.open_library(library)
    if choice is not None and looking.verify is not None:
        if looking.dry_run:
            _show_forecast(reader, text, found.candidates, looking.verify, choice, as_json=json)
            return
        from kinodex.jobs.verify import verified

        judged, looked = verified(reader, text, found.candidates, looking.verify, choice)
        found = with_verdicts(found, judged)
        _note_invalid(looked)
    watched = found if MomentRule(**by_rule) != AS_FOUND else arranged_by(PLAYED, found, reader.segments)
    clips = _export(reader, found, watched.ranges, csv, clip)
    _show(found, clips, as_json=json)


def _check_options(agent: str | None, looking: options.Looking, max_frames: int | None, place: str) -> None:
    """Refuse options that would do nothing."""
    if agent is None and max_frames is not None:
        raise UsageError("got --max-frames without --agent; name the agent it is for")
    if agent is not None and (looking.verify is not None or looking.dry_run):
        raise UsageError(
            "got --verify or --dry-run with --agent, whose model looks by itself; leave one of them out (`kinodex ask "
            "--dry-run` says what an agent costs)"
        )
    if agent is not None and place != "both":
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
