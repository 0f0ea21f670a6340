"""`kinodex speakers`: names of the voices that `kinodex add speech --speakers` told apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from kinodex.cli import options
from kinodex.index.terminal_text import visible
from kinodex.jobs.errors import UsageError
from kinodex.output import print_json, say

if TYPE_CHECKING:
    from kinodex.index.rows import SpeakerRow


def speakers(
    library: options.LibraryArgument,
    speaker: Annotated[
        str | None, typer.Argument(help="Such as speaker-3, or the name it has. Without it all are listed.")
    ] = None,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help='Such as "Anna". Two voices of one name are one person.')
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take the name away; the voice stays.")] = False,
    json: options.JsonOption = False,
) -> None:
    """List and name the people whose voices `kinodex add speech --speakers` told apart.

    The name stands in transcripts at once, and finds the same voice in videos that are added later.
    """
    opened = options.open_library(library)
    if speaker is None and remove:
        raise UsageError("got --remove and no speaker; say whose name: kinodex speakers LIBRARY speaker-3 --remove")
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
    if as_json:
        print_json([asdict(row) for row in rows])
        return
    for row in rows:
        say(f"{row.speaker:<12} {visible(row.name or '(no name)'):<24} heard for {row.seconds:,.0f} s in one video")
    if not rows:
        say("no voices are known; kinodex add speech --speakers tells them apart")
