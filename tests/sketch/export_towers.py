"""Export both towers of the built-in space beside its weights: `python -m tests.sketch.export_towers`.

That of pictures is written twice, for ONNX Runtime and for numpy alone.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from kinodex.index.spaces.space import LOCAL
from kinodex.index.spaces.towers import BUILTIN, TOWERS, SpaceTowers, write_towers


def export_towers(folder: Path) -> SpaceTowers:
    """Export the towers of the model in `folder` to its `towers` folder, under the name of the built-in space.

    Raises ExportRefused if one cannot be exported, ModuleNotFoundError without torch, open_clip or onnx.
    """
    from kinodex.index.spaces.cpu import export_image_tower
    from kinodex.index.spaces.export_text import export_text_tower
    from kinodex.index.spaces.resnet import export_resnet
    from kinodex.index.spaces.space import load_space

    place, name = folder / TOWERS, f"{LOCAL}{folder.absolute()}"
    place.mkdir(exist_ok=True)
    text_space, image_space = (load_space(name, device="cpu", towers=each) for each in ("text", "image"))
    builtin = replace(text_space.fingerprint, name="builtin")
    text, graph = export_text_tower(text_space, place), export_image_tower(image_space, place)
    towers = SpaceTowers(builtin, text, export_resnet(image_space, place, graph))
    write_towers(place, towers)
    return towers


def main(folder: Annotated[Path, typer.Argument(help="Folder of the model.")] = BUILTIN) -> None:
    """Export both towers of the model in a folder, and print how near they come to it."""
    towers = export_towers(folder)
    for kind, tower in (("text", towers.text), ("image", towers.image)):
        if tower is not None:
            print(f"{kind} tower: {tower.bytes:,} bytes, least cosine {tower.least_cosine} of {tower.samples}")


if __name__ == "__main__":
    typer.run(main)
