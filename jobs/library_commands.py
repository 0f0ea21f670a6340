"""`kinodex info`, `report` and `frames`: looking into a library."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

LibraryArgument = Annotated[str, typer.Argument(help="The library: a folder or any URI that LanceDB takes.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
VideoOption = Annotated[
    list[str] | None,
    typer.Option("--video", help="Only this video: its id (or the first digits), title or file. May be repeated."),
]
FromOption = Annotated[float | None, typer.Option("--from", help="Only from this time on, in seconds.")]
ToOption = Annotated[float | None, typer.Option("--to", help="Only before this time, in seconds.")]


def info(
    library: LibraryArgument,
    limit: Annotated[int, typer.Option(min=0, help="Videos and failures shown of each at most; 0: all.")] = 100,
    json: JsonOption = False,
) -> None:
    """What a library holds: videos, counts, spaces, settings, failures."""
    from index.library import Library
    from jobs.show import show_library

    show_library(Library.open(library), limit or None, as_json=json)


def report(
    library: LibraryArgument,
    run: Annotated[str | None, typer.Option(help="Only this run: its id, or the first digits of it.")] = None,
    json: JsonOption = False,
) -> None:
    """What the runs that wrote a library did, how long it took, and where the time went."""
    from index.library import Library
    from jobs.report import show_runs

    show_runs(Library.open(library), run, as_json=json)


def frames(
    library: LibraryArgument,
    video: Annotated[str, typer.Option(help="The video: its id (or the first digits), title or file.")],
    at: Annotated[list[float], typer.Option(help="A time in seconds; may be repeated.")],
    out: Annotated[Path, typer.Option(help="Folder for the JPEGs.")] = Path("frames"),
    mode: Annotated[str, typer.Option(help="nearest, exact, or shown (the frame on screen at that time).")] = "nearest",
    json: JsonOption = False,
) -> None:
    """Write stored frames as JPEG files."""
    from index.library import Library
    from jobs.errors import UsageError
    from jobs.show import show_frames

    if mode not in ("nearest", "exact", "shown"):
        raise UsageError(f"got --mode {mode}; it is nearest, exact or shown")
    opened = Library.open(library)
    row = opened.video(video)
    stored = opened.frames_at(row.video_id, at, mode=mode)
    show_frames(row, stored, out, as_json=json)
