"""`kinodex export`: videos of a library, and moments in them, as files for other programs."""

from __future__ import annotations

import typer

from jobs.cli.export.annotations import coco, fiftyone, label_studio
from jobs.cli.export.hf import hf
from jobs.cli.export.media import clips, frames
from jobs.cli.export.texts import csv, edl, jsonl, otio, srt, vtt

app = typer.Typer(no_args_is_help=True)


@app.callback()
def export() -> None:
    """Write videos of a library, or moments in them, as files for other programs."""


for command in (clips, frames, vtt, srt, edl, otio, csv, jsonl, label_studio, coco, fiftyone, hf):
    app.command()(command)
