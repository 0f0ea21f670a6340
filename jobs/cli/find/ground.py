"""`kinodex ground`: the ranges of time in which something happens, or that it happens nowhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from jobs.cli.options import models as options
from jobs.cli.options.library import JsonOption, LibraryArgument, VideoOption

if TYPE_CHECKING:
    from collections.abc import Sequence

    from index.library import Library
    from index.rows import VideoRow
    from jobs.export.media.joined import JoinedClip
    from jobs.ground.ground import Grounding
    from jobs.model_choice import ModelChoice

From = Literal["both", "pictures", "words"]


def ground(
    library: LibraryArgument,
    text: Annotated[str, typer.Argument(help='What happens, in words: "the goal is scored".')],
    video: VideoOption = None,
    most: Annotated[int, typer.Option(min=1, max=1000, help="Number of ranges.")] = 5,
    evidence_from: Annotated[
        From, typer.Option("--from", help="Pictures, words (said, written or captions), or both.")
    ] = "both",
    least: Annotated[
        float | None,
        typer.Option(help="Evidence that it takes to be there, in deviations.", show_default="by everyday texts"),
    ] = None,
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
    json: JsonOption = False,
) -> None:
    """Find the ranges of time in which something happens, by search alone or with an agent; or that it happens nowhere.

    Exits with 0 in either case.
    """
    from index.library import Library
    from jobs.ground.ground import ground as ground_by_search
    from jobs.model_choice import ModelChoice
    from jobs.open_library import open_environment

    _check_options(agent, model != "builtin" or bool(models or base_url or max_frames), evidence_from, least)
    _check_files(csv, clip)
    opened = Library.open(library)
    rows = opened.videos_named(video) if video else []
    if agent is None:
        environment = open_environment(opened, space=space)
        found = ground_by_search(opened, environment, text, rows, most=most, evidence_from=evidence_from, least=least)
    else:
        choice = ModelChoice(model, base_url, models, cache=cache)
        found = _by_agent(opened, text, rows, agent, choice, most, max_frames, space)
    clips = _export(opened, found, csv, clip)
    _show(found, clips, as_json=json)


def _check_options(agent: str | None, of_agents: bool, evidence_from: From, least: float | None) -> None:
    """Refuse options that would do nothing."""
    from jobs.errors import UsageError

    if agent is None and of_agents:
        raise UsageError(
            "got --model, --models, --base-url or --max-frames without --agent; name the agent they are for"
        )
    if agent is not None and (evidence_from != "both" or least is not None):
        raise UsageError("got --from or --least with --agent, which decides by itself; leave them out, or --agent")


def _check_files(csv: Path | None, clip: Path | None) -> None:
    """Refuse files that would be overwritten, before anything is searched."""
    if csv is not None:
        from jobs.export.texts.text_file import check_free

        check_free(csv, overwrite=False)
    if clip is not None:
        from jobs.export.media.joined import check_clip_path

        check_clip_path(clip)


def _by_agent(
    library: Library,
    text: str,
    rows: Sequence[VideoRow],
    agent: str,
    choice: ModelChoice,
    most: int,
    max_frames: int | None,
    space: str | None,
) -> Grounding:
    import asyncio

    from agent.core.budget import Budget
    from agent.variants.registry import find_variant
    from jobs.ground.by_agent import ground_with
    from jobs.model_choice import check_known_world
    from jobs.open_library import open_environment

    environment = open_environment(library, [row.video_id for row in rows], space=space)
    if find_variant(agent).roles:
        check_known_world(choice, environment.source.space, has_pictures=environment.has_pictures)
    options.announce(choice)
    call = ground_with(library, environment, text, agent, choice, most=most, budget=Budget(None, max_frames))
    return asyncio.run(call)


def _export(library: Library, found: Grounding, csv: Path | None, clip: Path | None) -> Sequence[JoinedClip]:
    """Write the ranges that were answered as a table and as films; nothing where there are none."""
    if csv is not None:
        from jobs.export.texts.tables import csv_text
        from jobs.export.texts.text_file import write_text

        write_text(str(csv), csv_text(found.ranges))
    if clip is None or not found.ranges:
        return []
    from jobs.export.media.joined import join_clips

    return join_clips(library, found.ranges, clip)


def _show(found: Grounding, clips: Sequence[JoinedClip], as_json: bool) -> None:
    from rich.markup import escape

    from jobs.console.escape import visible, visible_lines
    from jobs.console.output import clock, console, plain_table, print_json
    from jobs.ground.ground import as_json as to_json

    if as_json:
        files = [{"path": str(each.path), "title": each.title, "error": each.error} for each in clips]
        print_json(to_json(found) | {"clips": files})
        return
    out = console()
    out.print(_verdict(found), soft_wrap=True, markup=False)
    table = plain_table("from", "to", "score", "video", "found in", "")
    for at, each in enumerate(found.candidates):
        score = "" if each.score is None else f"{each.score:.3f}"
        times = clock(each.start_s), clock(each.end_s)
        weaker = "" if at < len(found.ranges) else "too weak"
        table.add_row(*times, score, escape(visible(each.video.title)), each.source, weaker)
    if found.candidates:
        out.print(table)
    for film in clips:
        print(f"no clip: {visible_lines(film.error)}" if film.error else f"clip  {visible(str(film.path))}")


def _verdict(found: Grounding) -> str:
    """The answer as one line."""
    from jobs.console.escape import visible_lines
    from jobs.console.output import counted

    if found.evidence is None or found.least is None:
        said = f": {visible_lines(found.reason)}" if found.reason else ""
        return f"{'found' if found.present else 'not found'} by {found.by}{said}"
    figures = f"evidence {found.evidence:.2f} of the {found.least:.2f} that it takes"
    return f"{counted(len(found.ranges), 'range')} ({figures})" if found.present else f"not found: {figures}"
