"""`kinodex add text`: what pictures show in letters."""

from __future__ import annotations

from typing import Annotated

import typer

from jobs.cli.add.options import AddressOption, RayOption, Sharing, WorkersOption
from jobs.cli.add.run import local_name, run
from jobs.cli.options.library import JsonOption, LibraryArgument, VideoOption


def text(
    library: LibraryArgument,
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
    video: VideoOption = None,
    ray: RayOption = False,
    ray_address: AddressOption = None,
    workers: WorkersOption = None,
    json: JsonOption = False,
) -> None:
    """Read the text on screen: each line with its box, from the first frame that shows it to the last."""
    from jobs.annotate.screen_text import ScreenText

    codes = [code.strip().lower() for each in language or () for code in each.split(",")]
    stage = ScreenText(local_name(model), tuple(sorted(set(filter(None, codes)))), full, min_confidence)
    run(library, stage, video, Sharing(ray, ray_address, workers), as_json=json)
