"""`kinodex add`, `extract` and `speakers`: results of more models for the videos of a library, and names of voices."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, cast

import typer

from kinodex.cli import options
from kinodex.cli.from_models import with_groups
from kinodex.cli.meant import Group
from kinodex.index.text import counted, visible
from kinodex.jobs.errors import OK, SOME_FAILED, UsageError
from kinodex.output import console, error_console, print_json, say, tell

if TYPE_CHECKING:
    from kinodex.index.library import Library
    from kinodex.index.rows import SpeakerRow
    from kinodex.jobs.add.endpoint import EndpointAddition
    from kinodex.jobs.add.run import Addition, AddReport


@with_groups
def captions(
    library: options.LibraryArgument,
    model: Annotated[
        str, typer.Option("--model", help="A model of transformers (hub id or folder), or one that --base-url serves.")
    ],
    writing: options.Writing = options.WRITING,
    frames_a_segment: Annotated[int, typer.Option(min=1, max=64, help="Frames that the model is shown.")] = 4,
    max_new_tokens: Annotated[int, typer.Option(min=1, help="Longest caption of a local model.")] = 96,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Also caption the segments that got no caption before.")
    ] = False,
) -> None:
    """Describe every segment in words, from some of its stored frames.

    With --batch-api the command waits for the batches; if it is ended, the same command waits for the same ones.
    """
    from kinodex.jobs.add.captions import Captions

    common = writing.settings(model)
    stage = Captions(**common, max_new_tokens=max_new_tokens, frames_a_segment=frames_a_segment)
    run_at_model(library, stage, writing, stage.incomplete_videos if retry_failed else None)


def run_at_model(
    uri: str,
    stage: EndpointAddition,
    writing: options.Writing,
    again: Callable[[Library], list[str]] | None = None,
    unit: str = "segments",
    frames_needed: bool = True,
) -> None:
    """Run an addition by a model as its options say: forecast it, by batches, or as any other."""
    from kinodex.jobs.models import ModelChoice

    if stage.base_url:
        options.announce(ModelChoice(stage.served, stage.base_url))
    if not (writing.dry_run or writing.batch_api):
        run(uri, stage, writing, again, frames_needed)
    library = options.open_library(uri)
    ids, repeated = _chosen(library, writing, frames_needed), again(library) if again else ()
    if writing.dry_run:
        from kinodex.jobs.add.batch_api import PRICE_SHARE
        from kinodex.jobs.add.run import pending_videos
        from kinodex.jobs.forecast import forecast_addition, table

        videos = pending_videos(library, stage.model, ids, repeated, stage.name)
        share = PRICE_SHARE if writing.batch_api else 1.0
        say(table([forecast_addition(library, stage, videos, share)], unit))
        return
    from kinodex.jobs.add.batch_api import by_batches

    with by_batches(library, stage, ids, repeated, tell) as batched:
        report = add_rows(library, batched, ids, options.HERE, repeated)
    _end(report, writing.json)


@with_groups
def detections(
    library: options.LibraryArgument,
    model: options.LocalModelOption,
    labels: Annotated[
        list[str] | None,
        typer.Option("--labels", help='Look for these words with an open-vocabulary model: "red car, dog".'),
    ] = None,
    min_score: Annotated[float, typer.Option(min=0.0, max=1.0, help="Least score that is kept.")] = 0.3,
    batch: Annotated[int, typer.Option(min=1, help="Frames at once.")] = 4,
    device: options.DeviceOption = "auto",
    adding: options.Adding = options.HERE,
) -> None:
    """Find things in every stored frame, with boxes, and follow them from frame to frame."""
    from kinodex.jobs.add.detections import Detections

    words = [" ".join(label.lower().split()) for given in labels or () for label in given.split(",")]
    stage = Detections(options.local_name(model), tuple(dict.fromkeys(filter(None, words))), min_score, batch, device)
    run(library, stage, adding)


@with_groups
def shots(
    library: options.LibraryArgument,
    adding: options.Adding = options.HERE,
) -> None:
    """Place each cut on its frame, and find where dissolves and fades begin and end, in the sources.

    Ingest knows only between which sampled frames a cut lies. Exports, chapters and all that goes by shots use the new
    ones at once; the sources have to be where they were.
    """
    from kinodex.jobs.add.shots import Shots

    run(library, Shots(), adding)


@with_groups
def sentences(
    library: options.LibraryArgument,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            help="A model of sentence-transformers: a local folder, or a hub id such as "
            "sentence-transformers/all-MiniLM-L6-v2.",
        ),
    ],
    device: options.DeviceOption = "auto",
    adding: options.Adding = options.HERE,
) -> None:
    """Embed transcripts, text on screen and captions, so that searches find them by meaning as well as by words.

    The model is kept with the library: searching needs neither torch nor a hub. Videos whose texts changed since are
    done again.
    """
    from kinodex.jobs.add.vectors import Sentences

    stage = Sentences(model, device)
    run(library, stage, adding, stage.outdated_videos, frames_needed=False)


@with_groups
def speech(
    library: options.LibraryArgument,
    model: options.LocalModelOption,
    language: Annotated[
        str | None, typer.Option(help='Such as "en". Default: found out, also where it changes.')
    ] = None,
    vad: Annotated[
        bool, typer.Option("--vad/--no-vad", help="Listen only where somebody speaks (found by silero-vad).")
    ] = True,
    speakers: Annotated[
        bool, typer.Option("--speakers/--no-speakers", help="Tell voices apart: speaker-1, ... through all videos.")
    ] = False,
    audio_track: Annotated[
        str | None,
        typer.Option(help="Sound track: its number from 1, or its language in the file. Default: a player's choice."),
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="Windows of half a minute at once.")] = 4,
    device: options.DeviceOption = "auto",
    adding: options.Adding = options.HERE,
) -> None:
    """Write down what is said, with the times of lines and words, from the sound of the sources (a Whisper model).

    Speakers are named with `kinodex speakers LIBRARY speaker-1 NAME`.
    """
    from kinodex.jobs.add.speech import Speech

    code = (language or "").strip().lower() or None  # as Whisper's codes are written
    run(library, Speech(options.local_name(model), code, batch, device, vad, speakers, audio_track), adding)


@with_groups
def summaries(
    library: options.LibraryArgument,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            help="A model of transformers (hub id or folder; one for text alone will do), or one that --base-url "
            "serves.",
        ),
    ],
    writing: options.Writing = options.WRITING,
    frames_a_scene: Annotated[
        int, typer.Option(min=1, max=64, help="Frames by which scenes are shown of which nothing is known in words.")
    ] = 4,
    max_new_tokens: Annotated[int, typer.Option(min=1, help="Longest title and summary of a local model.")] = 128,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Also the videos of which a scene or chapter got no title.")
    ] = False,
    renew: Annotated[
        bool, typer.Option("--renew", help="Also videos that got captions, speech or text after their summaries.")
    ] = False,
) -> None:
    """Join segments to scenes and scenes to chapters, and give each a title and a summary.

    They are joined without a model, by pictures, words and silence. The model writes from captions, speech and text on
    screen, so add these first.
    """
    from kinodex.jobs.add.chapters import Chapters

    again = retry_failed or renew
    common = writing.settings(model)
    stage = Chapters(**common, max_new_tokens=max_new_tokens, frames_a_scene=frames_a_scene, again=again)
    repeated = partial(stage.repeated, untitled=retry_failed, outdated=renew)
    run_at_model(library, stage, writing, repeated, "scenes and chapters", frames_needed=False)


@with_groups
def text(
    library: options.LibraryArgument,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            help="PP-OCRv6-small, whose weights are in the extra `text`, or a folder with another recogniser of "
            "PaddleOCR as ONNX (*rec*.onnx), and its detector (*det*.onnx) if it has one.",
        ),
    ] = "PP-OCRv6-small",
    language: Annotated[
        list[str] | None,
        typer.Option(
            "--language", help='Such as "en,de": letters of other scripts are left out. Default: all it reads.'
        ),
    ] = None,
    full: Annotated[
        bool,
        typer.Option(
            "--full", help="Read the sources at full size, up to 1920 px, for small print; not stored frames."
        ),
    ] = False,
    min_confidence: Annotated[float, typer.Option(min=0.0, max=1.0, help="Least confidence that is kept.")] = 0.75,
    adding: options.Adding = options.HERE,
) -> None:
    """Read the text on screen: each line with its box, from the first frame that shows it to the last."""
    from kinodex.jobs.add.screen_text import ScreenText

    codes = [code.strip().lower() for each in language or () for code in each.split(",")]
    stage = ScreenText(options.local_name(model), tuple(sorted(set(filter(None, codes)))), full, min_confidence)
    run(library, stage, adding)


def text_tower(
    library: options.LibraryArgument,
    space: Annotated[
        str | None, typer.Option(help="One of the library's spaces, by name or digest. Default: its own.")
    ] = None,
    with_image_tower: Annotated[
        bool, typer.Option("--with-image-tower", help="Also the image tower, for searches by picture.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Also towers that it carries, or whose export was refused before.")
    ] = False,
    json: options.JsonOption = False,
) -> None:
    """Keep the text tower of a space with the library, so that it can be searched without torch and without a hub."""
    from kinodex.index.spaces.towers import TowerKind, describe_tower
    from kinodex.jobs.open import find_space
    from kinodex.jobs.towers import carry_towers

    opened = options.open_library(library)
    kinds: list[TowerKind] = ["text", "image"] if with_image_tower else ["text"]
    carried = carry_towers(opened, find_space(opened, space), kinds, again)
    if json:
        print_json(asdict(carried))
    else:
        for kind in kinds:
            made = f", exported in {carried.seconds:.1f} s" if kind in carried.exported else ""
            say(f"{kind} tower of {carried.towers.space.name}: {describe_tower(carried.towers, kind)}{made}")
    raise typer.Exit(OK if all(carried.towers.tower(kind) for kind in kinds) else SOME_FAILED)


@with_groups
def vectors(
    library: options.LibraryArgument,
    space: Annotated[str, typer.Option("--space", "--model", help="The embedding space, as for `kinodex ingest`.")],
    batch: Annotated[int, typer.Option(min=1, help="Frames at once.")] = 32,
    device: options.DeviceOption = "auto",
    no_text_tower: Annotated[
        bool, typer.Option("--no-text-tower", help="Do not keep the space's text tower with the library.")
    ] = False,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Films that kinodex did not draw, in the space builtin: noise.")
    ] = False,
    adding: options.Adding = options.HERE,
) -> None:
    """Embed all stored frames in another space, beside the library's own."""
    from kinodex.index.spaces.space import absolute_name
    from kinodex.jobs.add.vectors import Vectors

    stage = Vectors(absolute_name(space), batch, device, text_tower=not no_text_tower, anyway=anyway)
    run(library, stage, adding)


# `kinodex add clips`: windows of some seconds, for what one frame cannot show.


@with_groups
def clips(
    library: options.LibraryArgument,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            help="A video-text model of transformers (X-CLIP, PE; a hub id or folder), or one that --base-url serves.",
        ),
    ],
    base_url: Annotated[
        str | None, typer.Option(help="A server with /v1/embeddings that takes pictures, http://HOST:PORT/v1.")
    ] = None,
    window: Annotated[float, typer.Option(help="Seconds of a window, 2 to 8.")] = 4.0,
    stride: Annotated[float, typer.Option(help="Seconds from the start of a window to that of the next.")] = 2.0,
    fps: Annotated[
        float | None, typer.Option(help="Decode the sources once at so many frames a second. Default: stored frames.")
    ] = None,
    frames: Annotated[
        int | None, typer.Option(min=1, max=64, help="Frames of a window. Default: the model's own number, or 8.")
    ] = None,
    instruction: Annotated[
        str, options.rare(help="Instruction to a served model before each window and query; '' sends these alone.")
    ] = "Represent the user's input.",
    batch: Annotated[int, typer.Option(min=1, help="Windows at once.")] = 8,
    input_price: options.InputPriceOption = 0.0,
    dry_run: options.DryRunOption = False,
    device: options.DeviceOption = "auto",
    adding: options.Adding = options.HERE,
) -> None:
    """Embed overlapping windows of some seconds by a model that sees movement; searches find them beside frames."""
    from kinodex.jobs.add.clips import Clips
    from kinodex.jobs.models import ModelChoice

    name = model if base_url else options.local_name(model)
    settings = (window, stride, fps, frames, base_url, instruction, batch, input_price, "cpu" if base_url else device)
    stage = Clips(name, *settings)
    if dry_run:
        from kinodex.jobs.forecast import forecast_clips, table

        opened = options.open_library(library)
        chosen = _chosen(opened, adding, frames_needed=True)
        videos = [row for row in stage.pending(opened) if chosen is None or row.video_id in chosen]
        say(table([forecast_clips(opened, stage, videos)], "windows"))
        return
    if base_url:
        options.announce(ModelChoice(name, base_url))
    run(library, stage, adding)


# `kinodex add map`: columns that a function of one's own makes.


@with_groups
def map_function(
    library: options.LibraryArgument,
    function: Annotated[str, typer.Argument(metavar="FILE.py:NAME", help="The function, in a file of Python.")],
    into: Annotated[str | None, typer.Option(help="Name of what it makes. Default: the function's.")] = None,
    over: Annotated[str, typer.Option(help="What it is called for: frames, segments or videos.")] = "frames",
    batch: Annotated[int, typer.Option(min=1, help="Frames or segments of one call.")] = 32,
    pictures_each: Annotated[int, typer.Option(min=1, help="Pictures of each segment or video, at most.")] = 8,
    version: Annotated[str, typer.Option(help="A mark for changes that the function's own text does not show.")] = "",
    replace: Annotated[bool, typer.Option("--replace", help="Make again what another function made.")] = False,
    adding: options.Adding = options.HERE,
) -> None:
    """Have a Python function of your own make columns of the library from its pictures and vectors.

    Its text is kept with what it makes, and it runs only for videos that lack that.
    """
    from kinodex.jobs.add.map import Map, Over, function_of

    name = into or function.rpartition(":")[2]
    stage = Map(function_of(function), name, cast(Over, over), batch, pictures_each, version, replaces=replace)
    run(library, stage, adding)


# `kinodex add`: results of more models for the videos of a library.

app = typer.Typer(
    cls=Group,
    help="Add captions, detections, speech, text on screen, another space and so on to the videos of a library that "
    "lack them. Run again, it does only what is new; it may run beside an ingest.",
    no_args_is_help=True,
)
app.command("captions")(captions)
app.command("detections")(detections)
app.command("sentences")(sentences)
app.command("speech")(speech)
app.command("screen_text")(text)
app.command("shots")(shots)
app.command("chapters")(summaries)
app.command("vectors")(vectors)
app.command("text-tower")(text_tower)
app.command("clips")(clips)
app.command("map")(map_function)


@with_groups
def extract(
    library: options.LibraryArgument,
    schema: Annotated[Path, typer.Option(help="A JSON schema: of an object, a row a part, or an array of them.")],
    into: Annotated[str, typer.Option(help="Name of the table: small letters, digits and _.")],
    model: Annotated[
        str, typer.Option("--model", help="A model of --base-url, or constrained:FOLDER, which sees no frames.")
    ],
    writing: options.Writing = options.WRITING,
    each: Annotated[
        str | None, typer.Option(help="The parts: video, chapter, scene, shot, or window:SECONDS. Default: scene.")
    ] = None,
    search: Annotated[str | None, typer.Option(help="Instead: moments of each video that these words find.")] = None,
    hits: Annotated[int, typer.Option("-k", min=1, max=1000, help="Moments of a video that --search finds.")] = 5,
    frames_a_part: Annotated[int, typer.Option(min=0, max=64, help="Frames of a part that the model is shown.")] = 8,
    lines_a_part: Annotated[
        int, typer.Option(min=0, max=1000, help="Lines of a part, said, on screen and captions, that it is given.")
    ] = 60,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Also the parts of which no reply could be used before.")
    ] = False,
) -> None:
    """Fill in a table from each part of the videos, by a model under a schema; run again, it does only what is new.

    Each row has its part, the time of its evidence, the model and its price. Another schema is another version:
    `kinodex remove added LIBRARY extracts NAME@DIGEST` takes one out. `kinodex sql` reads them.
    """
    from kinodex.jobs.add.extract import extraction, read_schema_file

    if each is not None and search is not None:
        raise UsageError("got --each and --search; leave one out")
    parts = {"part": "search", "search": search, "hits": hits} if search is not None else {"part": each or "scene"}
    common = writing.settings(model)
    stage = extraction(
        into,
        read_schema_file(schema),
        asks=str(common.pop("model")),
        **common,
        **parts,
        frames_a_part=frames_a_part,
        lines_a_part=lines_a_part,
        again=retry_failed,
    )
    again = (lambda opened: opened.extracts.faulty(stage.model)) if retry_failed else None
    run_at_model(library, stage, writing, again, "rows", frames_needed=False)


def speakers(
    library: options.LibraryArgument,
    speaker: Annotated[
        str | None, typer.Argument(help="Such as speaker-3, or the name it has. Without it all are listed.")
    ] = None,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help='Such as "Anna". Two voices of one name are one person.')
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take the name away; the voice stays.")] = False,
    json: options.JsonOption = False,
) -> None:
    """List and name the people whose voices `kinodex add speech --speakers` told apart.

    The name stands in transcripts at once, and finds the same voice in videos that are added later.
    """
    opened = options.open_library(library)
    if speaker is None and remove:
        raise UsageError("got --remove and no speaker; say whose name: kinodex speakers LIBRARY speaker-3 --remove")
    if speaker is not None:
        if (name is None) != remove:
            said = "a name and --remove" if remove else "no name"
            raise UsageError(f'got speaker {speaker!r} with {said}; give a name ("Anna"), or --remove to take it away')
        chosen = [row.speaker for row in opened.speakers.find(speaker)]
        opened.speakers.name(chosen, name)
        _show([row for row in opened.speakers.rows() if row.speaker in chosen], json)
    else:
        _show(opened.speakers.rows(), json)


def _show(rows: Sequence[SpeakerRow], as_json: bool) -> None:
    if as_json:
        print_json([asdict(row) for row in rows])
        return
    for row in rows:
        say(f"{row.speaker:<12} {visible(row.name or '(no name)'):<24} heard for {row.seconds:,.0f} s in one video")
    if not rows:
        say("no voices are known; kinodex add speech --speakers tells them apart")


# Show what a stage did: as text or as JSON.

RETRIED = ("captions", "chapters", "extracts")
"""Stages whose commands take --retry-failed."""


def _end(report: AddReport, as_json: bool) -> NoReturn:
    if as_json:
        print_json(report_json(report))
    else:
        show_report(report)
    raise typer.Exit(SOME_FAILED if report.failed or report.incomplete else OK)


def report_json(report: AddReport) -> dict[str, Any]:
    counts = {"added": report.added, "failed": report.failed, "incomplete": report.incomplete, "rows": report.rows}
    return {**asdict(report), **counts, "usage": asdict(report.usage), "arithmetic": report.arithmetic}


def show_report(report: AddReport) -> None:
    from rich.markup import escape

    out = console()
    for outcome in report.outcomes:
        if outcome.problem:
            word = "failed" if outcome.is_failed else "in part"
            title, problem = escape(visible(outcome.title)), escape(visible(outcome.problem))
            out.print(f"[red]{word}[/] {title}: {problem}", soft_wrap=True)
    if not report.outcomes:
        out.print(f"nothing to do: every video has {report.stage} by {escape(report.model)} already")
        return
    spent = report.usage
    tokens = f", {spent.input_tokens} tokens in, {spent.output_tokens} out" if spent.input_tokens else ""
    tokens += f", an estimated {spent.estimated_tokens} tokens" if spent.estimated_tokens else ""
    cost = f", cost {spent.cost:.4f}" if spent.cost else ""
    videos = f"{report.added} video{'s' * (report.added != 1)}"
    rows = {"speech": "lines of speech", "text": "lines of text", "shots": "segments"}.get(report.stage, report.stage)
    out.print(f"added {report.rows} {rows} to {videos} in {report.seconds:.1f} s{tokens}{cost}")
    if report.incomplete and report.stage in RETRIED:
        lacking = counted(report.incomplete, "video")
        out.print(f"{lacking} in part: run the same command with --retry-failed to ask about the rest again")


def run(
    uri: str,
    stage: Addition,
    adding: options.Adding,
    again: Callable[[Library], list[str]] | None = None,
    frames_needed: bool = True,
) -> NoReturn:
    """Add a stage, show what was done, and exit with 3 if it could not be done for some videos.

    `again` lists the videos that have it and get it again. Unless `frames_needed`, videos that were imported as text
    get it too.
    """
    library = options.open_library(uri)
    ids = _chosen(library, adding, frames_needed)
    _end(add_rows(library, stage, ids, adding, again(library) if again else ()), adding.json)


def _chosen(library: Library, adding: options.Adding, frames_needed: bool) -> list[str] | None:
    """The ids of the videos that are chosen, or of those with frames if these are needed; None for all."""
    if frames_needed:
        return with_frames(library, adding)
    rows = library.select(adding.video or (), adding.where)
    return None if rows is None else [row.video_id for row in rows]


def add_rows(
    library: Library, stage: Addition, ids: list[str] | None, adding: options.Adding, again: Collection[str]
) -> AddReport:
    from contextlib import ExitStack

    from kinodex.cli.show import add_progress_bar
    from kinodex.jobs.add.run import add

    with ExitStack() as stack:
        executor = None
        if adding.ray or adding.ray_address:
            from kinodex.jobs.workers import ray_executor

            executor = stack.enter_context(ray_executor(adding.workers, adding.ray_address))
        watch = stack.enter_context(add_progress_bar(error_console(), stage.name))
        return add(library, stage, ids, watch, executor, again)


def with_frames(library: Library, adding: options.Adding) -> list[str] | None:
    """The ids of those that are chosen and have frames, None for all."""
    rows = library.where(adding.where).chosen(adding.video or ())
    without = [row for row in rows if not row.frames]
    if adding.video and without:
        raise UsageError(f"got --video {without[0].title}, which was imported as text and has no frames; leave it out")
    if without:
        several = "videos that were imported as text are left out: they have no frames"
        one = "video that was imported as text is left out: it has no frames"
        tell(f"{len(without):,} {one if len(without) == 1 else several}")
    return [row.video_id for row in rows if row.frames] if without or adding.video or adding.where is not None else None
