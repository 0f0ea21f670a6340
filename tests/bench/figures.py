"""Options that the benches share, and how they print their figures."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from kinodex.output import print_json, say

FpsOption = Annotated[float, typer.Option(help="Frames sampled a second.")]
RoundsOption = Annotated[int, typer.Option(min=1, help="Rounds; medians are printed.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def show(figures: Any, text: str, as_json: bool) -> None:
    """Print figures as JSON, or the text that says the same."""
    if as_json:
        print_json([asdict(each) for each in figures] if isinstance(figures, list | tuple) else asdict(figures))
    else:
        say(text)
