"""`kinodex name`: the voices of a library and the names of their people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from jobs.cli.options.library import JsonOption, LibraryArgument

if TYPE_CHECKING:
    from index.rows import SpeakerRow


def name(
    library: LibraryArgument,
    speaker: Annotated[
        str | None, typer.Argument(help="Such as speaker-3, or the name it has. Without it all are listed.")
    ] = None,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help='Such as "Anna". Two voices of one name are one person.')
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take the name away; the voice stays.")] = False,
    json: JsonOption = False,
) -> None:
    """Name the people whose voices `kinodex add speech --speakers` told apart.

    The name stands in transcripts at once, and finds the same voice in videos that are added later.
    """
    from index.library import Library
    from jobs.errors import UsageError

    opened = Library.open(library)
    if speaker is None and remove:
        raise UsageError("got --remove and no speaker; say whose name: kinodex name LIBRARY speaker-3 --remove")
    if speaker is not None:
        if (name is None) != remove:
            said = "a name and --remove" if remove else "no name"
            raise UsageError(f'got speaker {speaker!r} with {said}; give a name ("Anna"), or --remove to take it away')
        chosen = [row.speaker for row in opened.speakers.find(speaker)]
        opened.speakers.name(chosen, name)
        _show([row for row in opened.speakers.rows() if row.speaker in chosen], json)
    else:
        _show(opened.speakers.rows(), json)


def _show(rows: Sequence[SpeakerRow], as_json: bool) -> None:
    from dataclasses import asdict

    from jobs.console.escape import visible
    from jobs.console.output import print_json

    if as_json:
        print_json([asdict(row) for row in rows])
        return
    for row in rows:
        print(f"{row.speaker:<12} {visible(row.name or '(no name)'):<24} heard for {row.seconds:,.0f} s in one video")
    if not rows:
        print("no voices are known; kinodex add speech --speakers tells them apart")
