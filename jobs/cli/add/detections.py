"""`kinodex add detections`: things in the stored frames."""

from __future__ import annotations

from typing import Annotated

import typer

from jobs.cli.add.options import AddressOption, DeviceOption, ModelOption, RayOption, Sharing, WorkersOption
from jobs.cli.add.run import local_name, run
from jobs.cli.options.library import JsonOption, LibraryArgument, VideoOption


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
