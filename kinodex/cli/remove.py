"""`kinodex remove`: remove videos, the rows that a model added to them, or voices, from a library."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from kinodex.cli.meant import Group
from kinodex.cli.options import LibraryArgument, VideoOption, open_library
from kinodex.index.durations import counted
from kinodex.index.terminal_text import visible
from kinodex.index.times import clock
from kinodex.jobs.errors import OK, UsageError
from kinodex.output import say

if TYPE_CHECKING:
    from kinodex.index.library import Library
    from kinodex.index.rows import AddedFacts

remove_app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    help="Remove videos from a library, the rows that a model added, or voices. `kinodex maintain` frees their space "
    "later, `kinodex maintain --purge` all of it.",
)
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
LISTED = 10


@remove_app.command()
def videos(
    library: LibraryArgument,
    video: Annotated[list[str], typer.Argument(help="A video: id (or its first digits), title, file, URI, or a glob.")],
    yes: YesOption = False,
) -> None:
    """Remove videos with their frames, vectors, texts and detections. Their files stay as they are.

    An ingest of the same files indexes them again.
    """
    from kinodex.index.remove import remove_videos

    opened = open_library(library)
    rows = opened.videos_named(video, whole_name=True)  # what is deleted is not guessed
    for row in rows[:LISTED]:
        say(f"{row.video_id[:12]}  {visible(row.title)}: {row.frames:,} frames of {clock(row.duration_s)}")
    if len(rows) > LISTED:
        say(f"and {len(rows) - LISTED:,} more")
    _confirm(f"Remove {counted(len(rows), 'video')} from {opened.uri}?", yes)
    remove_videos(opened, *(row.video_id for row in rows))
    say(f"{counted(len(rows), 'video')} removed, {len(opened.video_ids()):,} left")


@remove_app.command()
def added(
    library: LibraryArgument,
    stage: Annotated[
        str,
        typer.Argument(help="What was added, by the name of its `kinodex add` command; else extracts or notes."),
    ],
    model: Annotated[str, typer.Argument(help="Its name in `kinodex info`; for vectors and sentences a digest.")],
    video: VideoOption = None,
    yes: YesOption = False,
) -> None:
    """Remove the rows that a model added: what `kinodex add` made, such as captions, or notes of agents."""
    from kinodex.index.remove import remove_added

    opened = open_library(library)
    before = _facts(opened, stage, model)
    ids = [row.video_id for row in opened.videos_named(video, whole_name=True)] if video else sorted(opened.video_ids())
    of = f" of {counted(len(ids), 'video')}" if video else ""
    _confirm(f"Remove {stage} by {model}{of} from {opened.uri} ({before.rows:,} in {before.videos:,} videos)?", yes)
    remove_added(opened, stage, model, *ids)
    after = next((each for each in opened.info().added if (each.stage, each.model) == (stage, model)), None)
    say(f"{before.rows - (after.rows if after else 0):,} {stage} removed")


@remove_app.command()
def speaker(
    library: LibraryArgument,
    speaker: Annotated[list[str], typer.Argument(help="A voice, such as speaker-3, or its name.")],
    yes: YesOption = False,
) -> None:
    """Forget voices and their names. What they said stays, by "speaker 3"; the voice is not known again.

    Their videos' own speech goes with `kinodex remove added LIBRARY speech MODEL`.
    """
    opened = open_library(library)
    rows = {row.speaker: row for each in speaker for row in opened.speakers.find(each)}
    for row in rows.values():
        say(f"{row.speaker}  {visible(row.name or '(no name)')}")
    _confirm(f"Forget {counted(len(rows), 'voice')} of {opened.uri}?", yes)
    opened.speakers.forget([*rows])
    say(f"{counted(len(rows), 'voice')} forgotten, {len(opened.speakers.rows()):,} left")


def _facts(library: Library, stage: str, model: str) -> AddedFacts:
    held = library.info().added
    found = next((each for each in held if (each.stage, each.model) == (stage, model)), None)
    if found is None:
        what = ", ".join(f"{each.stage} {each.model}" for each in held) or "nothing"
        raise UsageError(f"got {stage} {model}, which {library.uri} does not hold; added to it: {what}")
    return found


def _confirm(question: str, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"{question} Nobody can answer here; give --yes")
    if not typer.confirm(question):
        raise typer.Exit(OK)
