"""`kinodex search`: find moments by words, by a picture, or by detections."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from kinodex.cli import options
from kinodex.cli.options import FromOption, JsonOption, LibraryArgument, ToOption, VideoOption

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from kinodex.index.library import Library
    from kinodex.index.rows import VideoRow
    from kinodex.index.sentences import Meaning
    from kinodex.jobs.duplicates import Progress
    from kinodex.jobs.export.media import JoinedClip
    from kinodex.jobs.ground import Grounding
    from kinodex.jobs.models import ModelChoice

KINDS = ("both", "frames", "words", "transcript", "text", "captions", "chapters", "detections")


def search(
    library: LibraryArgument,
    query: Annotated[str, typer.Argument(help="What to look for, in words.")] = "",
    image: Annotated[Path | None, typer.Option(help="Search by this picture instead of words.")] = None,
    video: VideoOption = None,
    from_s: FromOption = None,
    to_s: ToOption = None,
    k: Annotated[int, typer.Option("-k", min=1, max=1000, help="Number of hits.")] = 10,
    min_gap: Annotated[float, typer.Option(min=0.0, help="Least seconds between hits of one video.")] = 2.0,
    only: Annotated[
        str,
        typer.Option(
            help="frames (by embedding), words (said, on screen and captions, by words, and by meaning after `kinodex "
            "add sentences`), transcript (by words), text (on screen, by words, typos forgiven), captions (by words "
            "and meaning), chapters (by titles and summaries), detections (by label), or both: all but these two."
        ),
    ] = "both",
    label: Annotated[str | None, typer.Option(help="Only detections of this label.")] = None,
    min_score: Annotated[float, typer.Option(min=0.0, max=1.0, help="Least score of a detection.")] = 0.0,
    space: Annotated[
        str | None, typer.Option(help="Search frames in this space of the library, by its name or digest.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Find moments by words, by a picture, or by detections."""
    from kinodex.index.library import Library
    from kinodex.index.rows import Scope
    from kinodex.jobs.output import show_hits

    opened = Library.open(library)
    only = _checked("detections" if label is not None and only == "both" else only, query, image, label, space)
    if only in ("captions", "chapters", "detections", "text"):
        _check_added(opened, only)
    ids = tuple(row.video_id for row in opened.videos_named(video)) if video else None
    scope = Scope(ids, from_s, to_s)
    if only == "detections":
        hits = opened.search.detections(label or query, min_score, scope, k=k, min_gap_s=min_gap)
    elif only == "words":
        hits = opened.search.words(query, scope, k=k, min_gap_s=min_gap, meaning=_meaning(opened, query))
    elif only == "transcript":
        hits = opened.search.transcript(query, scope, k=k, min_gap_s=min_gap)
    elif only == "text":
        hits = opened.search.screen_text(query, scope, k=k, min_gap_s=min_gap)
    elif only == "chapters":
        hits = opened.search.chapters(query, scope, k)
    elif only == "frames":
        vector = _vector(opened, query, image, space)
        hits = opened.search.frames(vector, scope, k=k, min_gap_s=min_gap, space=space)
    elif only == "captions":
        vector = _vector(opened, query, None, None)
        hits = opened.search.captions(query, vector, scope, k=k, min_gap_s=min_gap)
    else:
        vector, meaning = _vector(opened, query, None, space), _meaning(opened, query)
        hits = opened.search.hybrid(query, vector, scope, k=k, min_gap_s=min_gap, space=space, meaning=meaning)
    show_hits(hits, opened, as_json=json)


def _checked(only: str, query: str, image: Path | None, label: str | None, space: str | None) -> str:
    """Check that the options fit together, and return the kind to search; a picture searches frames."""
    from kinodex.jobs.errors import UsageError

    if only not in KINDS:
        raise UsageError(f"got --only {only}; it is one of {', '.join(KINDS)}")
    if (image is not None or space is not None) and only not in ("both", "frames"):
        raise UsageError(f"got --only {only} with --image or --space, which search frames; leave one of them out")
    only = only if image is None else "frames"
    if label is not None and only != "detections":
        raise UsageError(f"got --label with a search of {only}; only detections have labels")
    if image is None and not query.strip() and not (label or "").strip():
        raise UsageError("got an empty query; give some words to look for, --label WORD, or --image FILE")
    return only


def _check_added(library: Library, stage: str) -> None:
    """Raise `UsageError` if a library has no rows of a stage, instead of finding nothing."""
    from kinodex.jobs.errors import UsageError

    what, stage = ("text on screen" if stage == "text" else stage), ("summaries" if stage == "chapters" else stage)
    if all(added.stage != stage for added in library.info().added):
        raise UsageError(f"{library.uri} has no {what}; `kinodex add {stage}` makes it from what the library holds")


def _vector(library: Library, query: str, image: Path | None, space: str | None) -> NDArray[np.floating[Any]]:
    """Embed the query or the picture as a unit vector `[dim]` of a space of the library; None is its own."""
    from kinodex.jobs.open import load_image_tower, load_text_tower

    vectors: NDArray[np.floating[Any]]
    if image is None:
        vectors = load_text_tower(library, space).embed_text([query])
    else:
        tower = load_image_tower(library, space)
        vectors = tower.embed(tower.prepare(_read_image(image))[None])
    vector: NDArray[np.floating[Any]] = vectors[0]
    return vector


def _meaning(library: Library, query: str) -> Meaning | None:
    """Embed the query by the library's sentence model, if it has one; say it where this machine cannot load it."""
    import sys

    meaning = library.sentences.meaning(query)
    if library.sentences.missing:
        print(f"note: lines are found by words alone: {library.sentences.missing}", file=sys.stderr)
    return meaning


def _read_image(path: Path) -> NDArray[np.uint8]:
    import numpy as np
    from PIL import Image, ImageOps

    from kinodex.jobs.errors import UsageError

    try:
        with Image.open(path) as picture:
            return np.asarray(ImageOps.exif_transpose(picture).convert("RGB"))
    except (OSError, SyntaxError, ValueError) as error:
        raise UsageError(f"cannot read the picture {path}: {error}; give a JPEG, PNG or WebP file") from error


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
    from kinodex.jobs.errors import UsageError

    if json and csv:
        raise UsageError("got both --json and --csv; give one of them")
    opened = Library.open(library)
    chosen = tuple(row.video_id for row in opened.videos_named(video)) if video else ()
    found = find_duplicates(opened, chosen, min_s=min_seconds, every_s=every, space=space, progress=_progress())
    show_duplicates(found, as_json=json, as_csv=csv)


def _progress() -> Progress:
    """Say on standard error, every half a minute, what is being done."""
    from kinodex.jobs.output import error_console, print_every

    offer = print_every(error_console())
    return lambda what, done, of: offer(lambda seconds: f"{what}: {done:,} of {of:,} after {seconds:,.0f} s")


# `kinodex ground`: the ranges of time in which something happens, or that it happens nowhere.

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
    from kinodex.index.library import Library
    from kinodex.jobs.ground import ground as ground_by_search
    from kinodex.jobs.models import ModelChoice
    from kinodex.jobs.open import open_environment

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
    from kinodex.jobs.errors import UsageError

    if agent is None and of_agents:
        raise UsageError(
            "got --model, --models, --base-url or --max-frames without --agent; name the agent they are for"
        )
    if agent is not None and (evidence_from != "both" or least is not None):
        raise UsageError("got --from or --least with --agent, which decides by itself; leave them out, or --agent")


def _check_files(csv: Path | None, clip: Path | None) -> None:
    """Refuse files that would be overwritten, before anything is searched."""
    if csv is not None:
        from kinodex.jobs.export.texts import check_free

        check_free(csv, overwrite=False)
    if clip is not None:
        from kinodex.jobs.export.media import check_clip_path

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

    from kinodex.agent.ask import find_variant
    from kinodex.agent.limits import Budget
    from kinodex.jobs.ground import ground_with
    from kinodex.jobs.models import check_known_world
    from kinodex.jobs.open import open_environment

    environment = open_environment(library, [row.video_id for row in rows], space=space)
    if find_variant(agent).roles:
        check_known_world(choice, environment.source.space, has_pictures=environment.has_pictures)
    options.announce(choice)
    call = ground_with(library, environment, text, agent, choice, most=most, budget=Budget(None, max_frames))
    return asyncio.run(call)


def _export(library: Library, found: Grounding, csv: Path | None, clip: Path | None) -> Sequence[JoinedClip]:
    """Write the ranges that were answered as a table and as films; nothing where there are none."""
    if csv is not None:
        from kinodex.jobs.export.texts import csv_text, write_text

        write_text(str(csv), csv_text(found.ranges))
    if clip is None or not found.ranges:
        return []
    from kinodex.jobs.export.media import join_clips

    return join_clips(library, found.ranges, clip)


def _show(found: Grounding, clips: Sequence[JoinedClip], as_json: bool) -> None:
    from rich.markup import escape

    from kinodex.jobs.ground import as_json as to_json
    from kinodex.jobs.output import clock, console, plain_table, print_json, visible, visible_lines

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
    from kinodex.jobs.output import counted, visible_lines

    if found.evidence is None or found.least is None:
        said = f": {visible_lines(found.reason)}" if found.reason else ""
        return f"{'found' if found.present else 'not found'} by {found.by}{said}"
    figures = f"evidence {found.evidence:.2f} of the {found.least:.2f} that it takes"
    return f"{counted(len(found.ranges), 'range')} ({figures})" if found.present else f"not found: {figures}"
