"""`kinodex remove`: videos, or what a model added to them, taken out of a library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jobs.cli.options.library import LibraryArgument, VideoOption

if TYPE_CHECKING:
    from index.library import Library
    from index.rows import AddedFacts

app = typer.Typer(
    no_args_is_help=True,
    help="Take videos out of a library, or what a model added to them. `kinodex maintain` gives the room back later, "
    "`kinodex maintain --purge` all of it.",
)
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
LISTED = 10


@app.command()
def videos(
    library: LibraryArgument,
    video: Annotated[list[str], typer.Argument(help="A video: id (or its first digits), title, file, URI, or a glob.")],
    yes: YesOption = False,
) -> None:
    """Take videos out, with their frames, vectors, texts and detections. Their files stay as they are.

    An ingest that is given their files again indexes them again.
    """
    from index.library import Library
    from jobs.console.escape import visible
    from jobs.console.output import clock

    opened = Library.open(library)
    rows = opened.videos_named(video)
    for row in rows[:LISTED]:
        print(f"{row.video_id[:12]}  {visible(row.title)}: {row.frames:,} frames of {clock(row.duration_s)}")
    if len(rows) > LISTED:
        print(f"and {len(rows) - LISTED:,} more")
    _agreed(f"Remove {_count(len(rows), 'video')} from {opened.uri}?", yes)
    opened.remove_videos(*(row.video_id for row in rows))
    print(f"{_count(len(rows), 'video')} removed, {len(opened.video_ids()):,} left")


@app.command()
def added(
    library: LibraryArgument,
    stage: Annotated[str, typer.Argument(help="captions, detections, speech, vectors, or clips (captions of agents).")],
    model: Annotated[str, typer.Argument(help="Whose, as `kinodex info` names it; of vectors the space's digest.")],
    video: VideoOption = None,
    yes: YesOption = False,
) -> None:
    """Take out what a model added: captions, detections, speech, vectors of another space, or clips."""
    from index.library import Library

    opened = Library.open(library)
    before = _facts(opened, stage, model)
    ids = [row.video_id for row in opened.videos_named(video)] if video else sorted(opened.video_ids())
    of = f" of {_count(len(ids), 'video')}" if video else ""
    _agreed(f"Remove {stage} by {model}{of} from {opened.uri} ({before.rows:,} in {before.videos:,} videos)?", yes)
    opened.remove_added(stage, model, *ids)
    after = next((each for each in opened.info().added if (each.stage, each.model) == (stage, model)), None)
    print(f"{before.rows - (after.rows if after else 0):,} {stage} removed")


def _facts(library: Library, stage: str, model: str) -> AddedFacts:
    """How much a model added; raises UsageError, which says what there is, if it added nothing."""
    from jobs.errors import UsageError

    held = library.info().added
    found = next((each for each in held if (each.stage, each.model) == (stage, model)), None)
    if found is None:
        what = ", ".join(f"{each.stage} {each.model}" for each in held) or "nothing"
        raise UsageError(f"got {stage} {model}, which {library.uri} does not hold; added to it: {what}")
    return found


def _agreed(asked: str, yes: bool) -> None:
    """Raises UsageError where nobody can be asked, and Exit where somebody says no."""
    import sys

    from jobs.errors import OK, UsageError

    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"{asked} Nobody can be asked here; give --yes")
    if not typer.confirm(asked):
        raise typer.Exit(OK)


def _count(count: int, what: str) -> str:
    return f"{count:,} {what}" + "s" * (count != 1)
