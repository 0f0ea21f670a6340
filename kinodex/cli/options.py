"""Options that several commands share.

May import typer, and nothing heavy: the help of most commands imports this file.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from kinodex.cli.from_models import MORE
from kinodex.index.times import parse_time

if TYPE_CHECKING:
    from kinodex.index.library import Library

time_option = partial(typer.Option, parser=parse_time, metavar="TIME")
rare = partial(typer.Option, rich_help_panel=MORE)


def open_library(uri: str, where: str | None = None) -> Library:
    """Open a library, or those of its videos for which a condition holds; Lance is imported only now."""
    from kinodex.index.library import Library

    return Library.open(uri).where(where)


LibraryArgument = Annotated[str, typer.Argument(help="The library: a folder or any URI that Lance takes.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
VideoOption = Annotated[
    list[str] | None,
    typer.Option(
        "--video",
        help="Only this video: id (or its first digits), title or a part of it, file, or a glob. May be repeated.",
    ),
]
WhereOption = Annotated[
    str | None,
    typer.Option(
        metavar="CONDITION",
        help="Only videos for which this holds: \"camera = 'front' AND recorded_at >= '2026-03-01'\". `kinodex info` "
        "lists the columns.",
    ),
]
FromOption = Annotated[float | None, time_option("--from", help="Only from this time on: 90.5 or 1:30.5.")]
ToOption = Annotated[float | None, time_option("--to", help="Only before this time.")]
