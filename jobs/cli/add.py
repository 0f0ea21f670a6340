"""`kinodex add captions|detections|speech|vectors`: results of more models for the videos of a library."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from jobs.cli.options.library import JsonOption, LibraryArgument, VideoOption
from jobs.cli.options.models import DryRunOption, InputPriceOption, OutputPriceOption, announce

if TYPE_CHECKING:
    from index.library import Library
    from jobs.annotate.captions import Captions
    from jobs.annotate.stage import AddReport, Stage

app = typer.Typer(
    help="Add captions, detections, speech or another space to the videos of a library that lack them. Run again, "
    "it does only what is new; it may run beside an ingest.",
    no_args_is_help=True,
)
ModelOption = Annotated[str, typer.Option("--model", help="A model of transformers: a hub id or a local folder.")]
DeviceOption = Annotated[str, typer.Option(help="Where the model runs: auto, cpu, cuda.")]
RayOption = Annotated[bool, typer.Option("--ray", help="Share the work among Ray actors.")]
WorkersOption = Annotated[
    int | None, typer.Option(min=1, help="Ray actors, each with the model. Default: one a GPU, else one a core.")
]
AddressOption = Annotated[
    str | None, typer.Option("--ray-address", help="The Ray cluster. Default: RAY_ADDRESS, else one started here.")
]


class Sharing(NamedTuple):
    """Use of Ray: on or off, its address, and the number of actors."""

    ray: bool
    address: str | None
    workers: int | None


@app.command()
def captions(
    library: LibraryArgument,
    model: Annotated[
        str, typer.Option("--model", help="A model of transformers (hub id or folder), or one that --base-url serves.")
    ],
    base_url: Annotated[
        str | None, typer.Option(help="An OpenAI-compatible endpoint, http://HOST:PORT/v1, instead of a local model.")
    ] = None,
    video: VideoOption = None,
    frames_a_segment: Annotated[int, typer.Option(min=1, max=64, help="Frames that the model is shown.")] = 4,
    batch: Annotated[
        int | None,
        typer.Option(min=1, help="Segments at once, of several videos together at an endpoint. Default: 4, there 32."),
    ] = None,
    max_new_tokens: Annotated[int, typer.Option(min=1, help="Longest caption of a local model.")] = 96,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Also caption again the videos of which segments got no caption.")
    ] = False,
    input_price: InputPriceOption = 0.0,
    output_price: OutputPriceOption = 0.0,
    device: DeviceOption = "auto",
    ray: RayOption = False,
    ray_address: AddressOption = None,
    workers: WorkersOption = None,
    batch_api: Annotated[
        bool,
        typer.Option(
            "--batch-api", help="Send the requests by the endpoint's Batch API: half the price, done within a day."
        ),
    ] = False,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
) -> None:
    """Describe every segment in words, from some of its stored frames.

    With --batch-api the command waits for the batches; if it is ended, the same command waits for the same ones.
    """
    from jobs.annotate.captions import REQUESTS_AT_ONCE, SEGMENTS_AT_ONCE, Captions
    from jobs.model_choice import ModelChoice

    name, device = (model, "cpu") if base_url else (local_name(model), device)
    batch = batch or (REQUESTS_AT_ONCE if base_url else SEGMENTS_AT_ONCE)
    prices = input_price, output_price
    stage = Captions(name, base_url, frames_a_segment, batch, max_new_tokens, device, *prices, again=retry_failed)
    if base_url:
        announce(ModelChoice(model, base_url))
    again = stage.incomplete_videos if retry_failed else None
    if batch_api or dry_run:
        _check_endpoint(base_url, batch_api and (ray or ray_address is not None))
    if dry_run:
        _show_forecast(library, stage, video, again, batch_api)
        return
    if batch_api:
        _add_by_batches(library, stage, video, json, again)
        return
    run(library, stage, video, Sharing(ray, ray_address, workers), json, again)


def _check_endpoint(base_url: str | None, on_ray: bool) -> None:
    from jobs.errors import UsageError

    if base_url is None:
        raise UsageError("got --batch-api or --dry-run for a local model, which costs nothing; give --base-url")
    if on_ray:
        raise UsageError(
            "got --batch-api with --ray; batches are sent and waited for by this process, so leave one out"
        )


def _show_forecast(
    uri: str, stage: Captions, names: list[str] | None, again: Callable[[Library], list[str]] | None, batch_api: bool
) -> None:
    """Print the calls, frames, tokens and money that captions are expected to cost."""
    from index.library import Library
    from jobs.annotate.batch_captions import PRICE_SHARE
    from jobs.forecast.captions import forecast_captions, pending_videos
    from jobs.forecast.forecast import table

    library = Library.open(uri)
    videos = pending_videos(library, stage.model, _with_frames(library, names), again(library) if again else ())
    share = PRICE_SHARE if batch_api else 1.0
    print(table([forecast_captions(library, videos, stage.role, stage.frames_a_segment, share)], "segments"))


def _add_by_batches(
    uri: str, stage: Captions, names: list[str] | None, as_json: bool, again: Callable[[Library], list[str]] | None
) -> None:
    """Have captions made by the Batch API, then add them."""
    from index.library import Library
    from jobs.annotate.batch_captions import caption_by_batches
    from jobs.errors import OK, SOME_FAILED

    library = Library.open(uri)
    ids, repeated = _with_frames(library, names), again(library) if again else ()
    with caption_by_batches(library, stage, ids, repeated, _tell) as batched:
        report = add_rows(library, batched, ids, Sharing(False, None, None), repeated)
    _show(report, as_json)
    raise typer.Exit(SOME_FAILED if report.failed else OK)


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@app.command()
def detections(
    library: LibraryArgument,
    model: ModelOption,
    labels: Annotated[
        list[str] | None,
        typer.Option("--labels", help='Look for these words with an open-vocabulary model: "red car, dog".'),
    ] = None,
    min_score: Annotated[float, typer.Option(min=0.0, max=1.0, help="Least score that is kept.")] = 0.3,
    video: VideoOption = None,
    batch: Annotated[int, typer.Option(min=1, help="Frames at once.")] = 4,
    device: DeviceOption = "auto",
    ray: RayOption = False,
    ray_address: AddressOption = None,
    workers: WorkersOption = None,
    json: JsonOption = False,
) -> None:
    """Find things in every stored frame, with boxes, and follow them from frame to frame."""
    from jobs.annotate.detections import Detections

    words = [" ".join(label.lower().split()) for given in labels or () for label in given.split(",")]
    stage = Detections(local_name(model), tuple(dict.fromkeys(filter(None, words))), min_score, batch, device)
    run(library, stage, video, Sharing(ray, ray_address, workers), as_json=json)


@app.command()
def speech(
    library: LibraryArgument,
    model: ModelOption,
    language: Annotated[str | None, typer.Option(help='Such as "en". Default: found out for each video.')] = None,
    video: VideoOption = None,
    batch: Annotated[int, typer.Option(min=1, help="Windows of half a minute at once.")] = 4,
    device: DeviceOption = "auto",
    ray: RayOption = False,
    ray_address: AddressOption = None,
    workers: WorkersOption = None,
    json: JsonOption = False,
) -> None:
    """Write down what is said, with times, from the sound of the sources (a Whisper model)."""
    from jobs.annotate.speech import Speech

    run(
        library,
        Speech(local_name(model), language, batch, device),
        video,
        Sharing(ray, ray_address, workers),
        as_json=json,
    )


@app.command()
def vectors(
    library: LibraryArgument,
    space: Annotated[str, typer.Option("--space", "--model", help="The embedding space, as for `kinodex ingest`.")],
    video: VideoOption = None,
    batch: Annotated[int, typer.Option(min=1, help="Frames at once.")] = 32,
    device: DeviceOption = "auto",
    no_text_tower: Annotated[
        bool, typer.Option("--no-text-tower", help="Do not keep the space's text tower with the library.")
    ] = False,
    ray: RayOption = False,
    ray_address: AddressOption = None,
    workers: WorkersOption = None,
    json: JsonOption = False,
) -> None:
    """Embed all stored frames in another space, beside the library's own."""
    from index.embedding.model_source import absolute_name
    from jobs.annotate.vectors import Vectors

    stage = Vectors(absolute_name(space), batch, device, text_tower=not no_text_tower)
    run(library, stage, video, Sharing(ray, ray_address, workers), as_json=json)


@app.command("text-tower")
def text_tower(
    library: LibraryArgument,
    space: Annotated[
        str | None, typer.Option(help="One of the library's spaces, by name or digest. Default: its own.")
    ] = None,
    with_image_tower: Annotated[
        bool, typer.Option("--with-image-tower", help="Also the image tower, for searches by picture.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Also towers that it carries, or whose export was refused before.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Keep the text tower of a space with the library, so that it can be searched without torch and without a hub."""
    from dataclasses import asdict

    from index.embedding.portable.tower_files import TowerKind, describe_tower
    from index.library import Library
    from jobs.carry_towers import carry_towers
    from jobs.console.output import print_json
    from jobs.errors import OK, SOME_FAILED
    from jobs.open_library import find_space

    opened = Library.open(library)
    kinds: list[TowerKind] = ["text", "image"] if with_image_tower else ["text"]
    carried = carry_towers(opened, find_space(opened, space), kinds, again)
    if json:
        print_json(asdict(carried))
    else:
        for kind in kinds:
            made = f", exported in {carried.seconds:.1f} s" if kind in carried.exported else ""
            print(f"{kind} tower of {carried.towers.space.name}: {describe_tower(carried.towers, kind)}{made}")
    raise typer.Exit(OK if all(carried.towers.tower(kind) for kind in kinds) else SOME_FAILED)


def local_name(model: str) -> str:
    """Resolve a folder to its whole path, so that it is one model from any working directory; keep a hub id."""
    from pathlib import Path

    folder = Path(model).expanduser()
    return str(folder.resolve()) if folder.is_dir() else model


def run(
    uri: str,
    stage: Stage,
    videos: list[str] | None,
    sharing: Sharing,
    as_json: bool,
    again: Callable[[Library], list[str]] | None = None,
) -> None:
    """Add a stage, show what was done, and exit with 3 if it could not be done for some videos.

    `again` lists the videos that have it and get it again.
    """
    from index.library import Library
    from jobs.errors import OK, SOME_FAILED

    library = Library.open(uri)
    report = add_rows(library, stage, _with_frames(library, videos), sharing, again(library) if again else ())
    _show(report, as_json)
    raise typer.Exit(SOME_FAILED if report.failed else OK)


def add_rows(
    library: Library, stage: Stage, ids: list[str] | None, sharing: Sharing, again: Collection[str]
) -> AddReport:
    """Add a stage to videos with a progress bar, here or on Ray."""
    from contextlib import ExitStack

    from jobs.annotate.run import add
    from jobs.console.add_progress import add_progress_bar
    from jobs.console.output import error_console

    with ExitStack() as stack:
        executor = None
        if sharing.ray or sharing.address:
            from jobs.annotate.ray_executor import ray_executor

            executor = stack.enter_context(ray_executor(sharing.workers, sharing.address))
        watch = stack.enter_context(add_progress_bar(error_console(), stage.name))
        return add(library, stage, ids, watch, executor, again)


def _with_frames(library: Library, names: list[str] | None) -> list[str] | None:
    """Ids of the named videos that have frames; of all such videos, or None if all have frames."""
    from jobs.errors import UsageError

    rows = library.videos_named(names) if names else library.videos()
    without = [row for row in rows if not row.frames]
    if names and without:
        raise UsageError(f"got --video {without[0].title}, which was imported as text and has no frames; leave it out")
    if without:
        several = "videos that were imported as text are left out: they have no frames"
        one = "video that was imported as text is left out: it has no frames"
        print(f"{len(without):,} {one if len(without) == 1 else several}", file=sys.stderr)
    return [row.video_id for row in rows if row.frames] if names or without else None


def _show(report: AddReport, as_json: bool) -> None:
    from jobs.console.output import print_json

    if as_json:
        print_json(report_json(report))
    else:
        show_report(report)


def report_json(report: AddReport) -> dict[str, Any]:
    """Make the JSON of a report."""
    from dataclasses import asdict

    counts = {"added": report.added, "failed": report.failed, "rows": report.rows}
    return {**asdict(report), **counts, "usage": asdict(report.usage), "arithmetic": report.arithmetic}


def show_report(report: AddReport) -> None:
    """Show a report to people: problems first."""
    from rich.markup import escape

    from jobs.console.escape import visible
    from jobs.console.output import console

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
    rows = "lines of speech" if report.stage == "speech" else report.stage
    out.print(f"added {report.rows} {rows} to {videos} in {report.seconds:.1f} s{tokens}{cost}")
