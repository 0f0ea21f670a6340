"""`kinodex export`: videos of a library as files for other programs."""

from __future__ import annotations

import typer

from jobs.cli.export.hf import hf

app = typer.Typer(no_args_is_help=True)


@app.callback()
def export() -> None:
    """Write videos of a library as files for other programs."""


app.command()(hf)
