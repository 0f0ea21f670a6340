"""`kinodex add speech`: what is said."""

from __future__ import annotations

from typing import Annotated

import typer

from jobs.cli.add.options import AddressOption, DeviceOption, ModelOption, RayOption, Sharing, WorkersOption
from jobs.cli.add.run import local_name, run
from jobs.cli.options.library import JsonOption, LibraryArgument, VideoOption


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
