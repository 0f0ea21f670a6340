"""Options of commands that read a library."""

from __future__ import annotations

from typing import Annotated

import typer

LibraryArgument = Annotated[str, typer.Argument(help="The library: a folder or any URI that Lance takes.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
VideoOption = Annotated[
    list[str] | None,
    typer.Option(
        "--video",
        help="Only this video: id (or its first digits), title or a part of it, file, or a glob. May be repeated.",
    ),
]
FromOption = Annotated[float | None, typer.Option("--from", help="Only from this time on, in seconds.")]
ToOption = Annotated[float | None, typer.Option("--to", help="Only before this time, in seconds.")]
