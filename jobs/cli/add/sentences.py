"""`kinodex add sentences`: lines of text as vectors, to be searched by meaning."""

from __future__ import annotations

from typing import Annotated

import typer

from jobs.cli.add.options import AddressOption, DeviceOption, RayOption, Sharing, WorkersOption
from jobs.cli.add.run import run
from jobs.cli.options.library import JsonOption, LibraryArgument, VideoOption


def sentences(
    library: LibraryArgument,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            help="A model of sentence-transformers: a local folder, or a hub id such as "
            "sentence-transformers/all-MiniLM-L6-v2.",
        ),
    ],
    video: VideoOption = None,
    device: DeviceOption = "auto",
    ray: RayOption = False,
    ray_address: AddressOption = None,
    workers: WorkersOption = None,
    json: JsonOption = False,
) -> None:
    """Embed transcripts, text on screen and captions, so that searches find them by meaning as well as by words.

    The model is kept with the library: searching needs neither torch nor a hub. Videos whose texts changed since are
    done again.
    """
    from jobs.annotate.sentences import Sentences

    stage = Sentences(model, device)
    run(library, stage, video, Sharing(ray, ray_address, workers), json, stage.outdated_videos, frames_needed=False)
