"""`kinodex add summaries`: scenes and chapters, with titles and summaries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jobs.cli.add.options import AddressOption, DeviceOption, RayOption, Sharing, WorkersOption
from jobs.cli.add.run import local_name, run
from jobs.cli.options.library import JsonOption, LibraryArgument, VideoOption
from jobs.cli.options.models import DryRunOption, InputPriceOption, OutputPriceOption, announce

if TYPE_CHECKING:
    from jobs.annotate.summaries import Summaries


ModelOption = Annotated[
    str,
    typer.Option(
        "--model",
        help="A model of transformers (hub id or folder; one for text alone will do), or one that --base-url serves.",
    ),
]
BaseUrlOption = Annotated[
    str | None, typer.Option(help="An OpenAI-compatible endpoint, http://HOST:PORT/v1, instead of a local model.")
]
FramesOption = Annotated[
    int, typer.Option(min=1, max=64, help="Frames by which scenes are shown of which nothing is known in words.")
]
BatchOption = Annotated[
    int | None,
    typer.Option(min=1, help="Scenes at once, of several videos together at an endpoint. Default: 4, there 32."),
]
RetryOption = Annotated[
    bool, typer.Option("--retry-failed", help="Also the videos of which a scene or chapter got no title.")
]
RenewOption = Annotated[
    bool, typer.Option("--renew", help="Also videos that got captions, speech or text after their summaries.")
]


def summaries(
    library: LibraryArgument,
    model: ModelOption,
    base_url: BaseUrlOption = None,
    video: VideoOption = None,
    frames_a_scene: FramesOption = 4,
    batch: BatchOption = None,
    max_new_tokens: Annotated[int, typer.Option(min=1, help="Longest title and summary of a local model.")] = 128,
    retry_failed: RetryOption = False,
    renew: RenewOption = False,
    input_price: InputPriceOption = 0.0,
    output_price: OutputPriceOption = 0.0,
    device: DeviceOption = "auto",
    ray: RayOption = False,
    ray_address: AddressOption = None,
    workers: WorkersOption = None,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
) -> None:
    """Join segments to scenes and scenes to chapters, and give each a title and a summary.

    They are joined without a model, by pictures, words and silence. The model writes from captions, speech and text on
    screen, so add these first.
    """
    from jobs.annotate.endpoint import default_batch
    from jobs.annotate.summaries import Summaries
    from jobs.model_choice import ModelChoice

    name, device = (model, "cpu") if base_url else (local_name(model), device)
    batch = batch or default_batch(base_url)
    again = retry_failed or renew
    stage = Summaries(
        name, base_url, frames_a_scene, batch, max_new_tokens, device, input_price, output_price, again=again
    )
    if base_url:
        announce(ModelChoice(model, base_url))
    if dry_run:
        _show_forecast(library, stage, video, retry_failed, renew)
        return
    run(
        library,
        stage,
        video,
        Sharing(ray, ray_address, workers),
        json,
        lambda opened: stage.repeated(opened, retry_failed, renew),
        frames_needed=False,
    )


def _show_forecast(uri: str, stage: Summaries, names: list[str] | None, retry_failed: bool, renew: bool) -> None:
    """Print the calls, frames, tokens and money that summaries are expected to cost."""
    from index.library import Library
    from jobs.errors import UsageError
    from jobs.forecast.captions import pending_videos
    from jobs.forecast.forecast import table
    from jobs.forecast.summaries import forecast_summaries

    if stage.base_url is None:
        raise UsageError("got --dry-run for a local model, which costs nothing; give --base-url")
    library = Library.open(uri)
    again = stage.repeated(library, retry_failed, renew)
    ids = [row.video_id for row in library.videos_named(names)] if names else None
    videos = pending_videos(library, stage.model, ids, again, "summaries")
    print(table([forecast_summaries(library, videos, stage.role, stage.frames_a_scene)], "scenes and chapters"))
