"""`kinodex export clips` and `frames`: moments as video files and as pictures."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from jobs.cli.options.library import JsonOption, LibraryArgument
from jobs.cli.options.moments import FolderArgument, MomentOptions, with_moments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobs.export.media.clips import ClipRow
    from jobs.export.media.joined import JoinedClip


@with_moments
def clips(
    library: LibraryArgument,
    folder: FolderArgument,
    moments: MomentOptions,
    exact: Annotated[
        bool, typer.Option("--exact", help="Cut to the frame, by encoding again; else at key frames, without loss.")
    ] = False,
    join: Annotated[
        bool, typer.Option("--join", help="One file a video, its ranges one after another, cut to the frame.")
    ] = False,
    subtitles: Annotated[bool, typer.Option(help="Add what is said as a text track.")] = True,
    json: JsonOption = False,
) -> None:
    """Cut moments out of the videos' own files, with their sound: a file each, and clips.csv.

    Exits with 3 if some could not be cut; clips.csv says why. Run again after it was interrupted, it goes on.
    """
    from index.library import Library
    from jobs.console.output import error_console, print_every
    from jobs.export.media.clips import export_clips
    from jobs.export.media.cut import CutWay
    from jobs.export.media.joined import export_joined

    opened = Library.open(library)
    chosen = moments.choose(opened, None)
    if join:
        _show_joined(export_joined(opened, chosen, folder), str(folder), as_json=json)
        return
    line = print_every(error_console())

    def on_clip(done: int, total: int) -> None:
        line(lambda seconds: f"{done:,} of {total:,} clips after {seconds:.0f} s")

    rows = export_clips(opened, chosen, folder, CutWay(exact, subtitles), on_clip)
    _show_clips(rows, str(folder), as_json=json)


def _show_clips(rows: Sequence[ClipRow], folder: str, as_json: bool) -> None:
    from dataclasses import asdict

    from jobs.console.output import print_json

    if as_json:
        print_json([asdict(row) for row in rows])
    _finish([row.error for row in rows], folder, quiet=as_json)


def _show_joined(clips: Sequence[JoinedClip], folder: str, as_json: bool) -> None:
    from dataclasses import asdict

    from jobs.console.output import print_json

    if as_json:
        print_json([asdict(each) for each in clips])
    _finish([each.error for each in clips], folder, quiet=as_json)


def _finish(errors: Sequence[str], folder: str, quiet: bool) -> None:
    """Say how many clips there are and why others are not; exits with 3 if some are not."""
    from jobs.console.escape import visible, visible_lines
    from jobs.console.output import counted
    from jobs.errors import SOME_FAILED

    failed = [error for error in errors if error]
    if not quiet:
        print(f"{counted(len(errors) - len(failed), 'clip')} in {visible(folder)}")
    for error, count in Counter(failed).items():
        typer.echo(f"{counted(count, 'clip')} not cut: {visible_lines(error)}", err=True)
    if failed:
        raise typer.Exit(SOME_FAILED)


@with_moments
def frames(
    library: LibraryArgument,
    folder: FolderArgument,
    moments: MomentOptions,
    most: Annotated[int | None, typer.Option(min=1, help="At most so many frames of a moment, evenly spread.")] = None,
    json: JsonOption = False,
) -> None:
    """Write the stored frames of moments as JPEGs, and frames.csv."""
    from index.library import Library
    from jobs.console.escape import visible
    from jobs.console.output import counted, print_json
    from jobs.export.media.frames import export_frames

    opened = Library.open(library)
    rows = export_frames(opened, moments.choose(opened, None), folder, most)
    if json:
        print_json(rows)
    else:
        print(f"{counted(len({row['file'] for row in rows}), 'frame')} in {visible(str(folder))}")
