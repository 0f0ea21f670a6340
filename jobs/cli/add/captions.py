"""`kinodex add captions`: every segment in words."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from jobs.cli.add.options import AddressOption, DeviceOption, RayOption, Sharing, WorkersOption
from jobs.cli.add.report import show
from jobs.cli.add.run import add_rows, local_name, run, with_frames
from jobs.cli.options.library import JsonOption, LibraryArgument, VideoOption
from jobs.cli.options.models import DryRunOption, InputPriceOption, OutputPriceOption, announce

if TYPE_CHECKING:
    from index.library import Library
    from jobs.annotate.captions import Captions


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
        bool, typer.Option("--retry-failed", help="Also caption the segments that got no caption before.")
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
    from jobs.annotate.captions import Captions
    from jobs.annotate.endpoint import default_batch
    from jobs.model_choice import ModelChoice

    name, device = (model, "cpu") if base_url else (local_name(model), device)
    batch = batch or default_batch(base_url)
    prices = input_price, output_price
    stage = Captions(name, base_url, frames_a_segment, batch, max_new_tokens, device, *prices)
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
    videos = pending_videos(library, stage.model, with_frames(library, names), again(library) if again else ())
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
    ids, repeated = with_frames(library, names), again(library) if again else ()
    with caption_by_batches(library, stage, ids, repeated, _tell) as batched:
        report = add_rows(library, batched, ids, Sharing(False, None, None), repeated)
    show(report, as_json)
    raise typer.Exit(SOME_FAILED if report.failed else OK)


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
