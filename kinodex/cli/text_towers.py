"""`kinodex add text-tower`: a library that is searched without torch and without a hub."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from kinodex.cli import options
from kinodex.jobs.errors import OK, SOME_FAILED
from kinodex.output import print_json, say


def text_tower(
    library: options.LibraryArgument,
    space: Annotated[
        str | None, typer.Option(help="One of the library's spaces, by name or digest. Default: its own.")
    ] = None,
    with_image_tower: Annotated[
        bool, typer.Option("--with-image-tower", help="Also the image tower, for searches by picture.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Also towers that it carries, or whose export was refused before.")
    ] = False,
    json: options.JsonOption = False,
) -> None:
    """Keep the text tower of a space with the library, so that it can be searched without torch and without a hub."""
    from kinodex.index.spaces.towers import TowerKind, describe_tower
    from kinodex.jobs.open import find_space
    from kinodex.jobs.towers.carried import carry_towers

    opened = options.open_library(library)
    kinds: list[TowerKind] = ["text", "image"] if with_image_tower else ["text"]
    carried = carry_towers(opened, find_space(opened, space), kinds, again)
    if json:
        print_json(asdict(carried))
    else:
        for kind in kinds:
            made = f", exported in {carried.seconds:.1f} s" if kind in carried.exported else ""
            say(f"{kind} tower of {carried.towers.space.name}: {describe_tower(carried.towers, kind)}{made}")
    raise typer.Exit(OK if all(carried.towers.tower(kind) for kind in kinds) else SOME_FAILED)
