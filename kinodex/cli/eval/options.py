"""Arguments and options that commands of `kinodex eval` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

BenchmarkArgument = Annotated[
    str, typer.Argument(help="A benchmark's name, such as egoschema, lvbench or own, or FILE.py:NAME.")
]
MapOption = Annotated[
    Path | None, typer.Option("--map", exists=True, help="CSV or JSON: the library's names for the videos.")
]
OnlyOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="GROUP=VALUE",
        help="Only these questions, such as duration=long. Repeated: of one group any value, of several groups all.",
    ),
]
IdsOption = Annotated[
    Path | None, typer.Option(exists=True, dir_okay=False, help="Only the questions in this file, an id a line.")
]
RunArgument = Annotated[Path, typer.Argument(help="The folder of a run, as `kinodex eval` wrote it with --out.")]
MarkdownOption = Annotated[bool, typer.Option("--markdown", help="Print the tables as Markdown, for papers.")]
PageOption = Annotated[bool, typer.Option(help="Also write report.html and figures/ again.")]
