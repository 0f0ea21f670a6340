"""`kinodex add vectors`: the stored frames in another space."""

from __future__ import annotations

from typing import Annotated

import typer

from jobs.cli.add.options import AddressOption, DeviceOption, RayOption, Sharing, WorkersOption
from jobs.cli.add.run import run
from jobs.cli.options.library import JsonOption, LibraryArgument, VideoOption


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
