"""`kinodex add text-tower`: a space's text tower, kept with the library."""

from __future__ import annotations

from typing import Annotated

import typer

from jobs.cli.options.library import JsonOption, LibraryArgument


def text_tower(
    library: LibraryArgument,
    space: Annotated[
        str | None, typer.Option(help="One of the library's spaces, by name or digest. Default: its own.")
    ] = None,
    with_image_tower: Annotated[
        bool, typer.Option("--with-image-tower", help="Also the image tower, for searches by picture.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Also towers that it carries, or whose export was refused before.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Keep the text tower of a space with the library, so that it can be searched without torch and without a hub."""
    from dataclasses import asdict

    from index.embedding.portable.tower_files import TowerKind, describe_tower
    from index.library import Library
    from jobs.carry_towers import carry_towers
    from jobs.console.output import print_json
    from jobs.errors import OK, SOME_FAILED
    from jobs.open_library import find_space

    opened = Library.open(library)
    kinds: list[TowerKind] = ["text", "image"] if with_image_tower else ["text"]
    carried = carry_towers(opened, find_space(opened, space), kinds, again)
    if json:
        print_json(asdict(carried))
    else:
        for kind in kinds:
            made = f", exported in {carried.seconds:.1f} s" if kind in carried.exported else ""
            print(f"{kind} tower of {carried.towers.space.name}: {describe_tower(carried.towers, kind)}{made}")
    raise typer.Exit(OK if all(carried.towers.tower(kind) for kind in kinds) else SOME_FAILED)
