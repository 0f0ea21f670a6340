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
    language: Annotated[
        str | None, typer.Option(help='Such as "en". Default: found out, also where it changes.')
    ] = None,
    video: VideoOption = None,
    vad: Annotated[
        bool, typer.Option("--vad/--no-vad", help="Listen only where somebody speaks (found by silero-vad).")
    ] = True,
    speakers: Annotated[
        bool, typer.Option("--speakers/--no-speakers", help="Tell voices apart: speaker-1, ... through all videos.")
    ] = False,
    batch: Annotated[int, typer.Option(min=1, help="Windows of half a minute at once.")] = 4,
    device: DeviceOption = "auto",
    ray: RayOption = False,
    ray_address: AddressOption = None,
    workers: WorkersOption = None,
    json: JsonOption = False,
) -> None:
    """Write down what is said, with the times of lines and words, from the sound of the sources (a Whisper model).

    Speakers are named with `kinodex name LIBRARY speaker-1 NAME`.
    """
    from jobs.annotate.speech import Speech

    code = (language or "").strip().lower() or None  # as Whisper's codes are written
    run(
        library,
        Speech(local_name(model), code, batch, device, vad, speakers),
        video,
        Sharing(ray, ray_address, workers),
        as_json=json,
    )
