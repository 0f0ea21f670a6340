"""`kinodex search`: find moments by words, a picture or detections."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kinodex.cli import model_options, options
from kinodex.cli.from_models import with_groups
from kinodex.cli.options import JsonOption, LibraryArgument
from kinodex.index.durations import counted
from kinodex.index.kinds import ALL
from kinodex.jobs.errors import UsageError
from kinodex.output import print_json, say, tell
from kinodex.requests import Find

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kinodex.jobs.costs import Forecast
    from kinodex.jobs.verification.look import Looked


@with_groups
def search(
    library: LibraryArgument,
    request: Find,
    image: Annotated[
        Path | None, typer.Option(help="Look for what is in this picture, instead of the words or beside them.")
    ] = None,
    label: Annotated[str | None, typer.Option(help="Only detections of this label.")] = None,
    space: Annotated[
        str | None, typer.Option(help="Search frames in this space of the library, by its name or digest.")
    ] = None,
    looking: model_options.Looking = model_options.LOOKING,
    json: JsonOption = False,
) -> None:
    """Find moments by words, by a picture, or by detections; and with --verify say of the first if it is there."""
    from kinodex.cli.hit_tables import show_hits
    from kinodex.desk import Desk

    choice = looking.choice(used=request.verify > 0)
    request = _checked(request, image, label, space)
    desk = Desk(options.open_library(library), choice, space=space)
    if looking.dry_run:
        show_forecast(desk.forecast(request), as_json=json)
        return
    if choice is not None:
        model_options.announce(choice)
    found = desk.find(request, image)
    for note in found.notes:
        tell(f"note: {note}")
    note_invalid(found.looked)
    show_hits(found.hits, desk.library, as_json=json)


def _checked(request: Find, image: Path | None, label: str | None, space: str | None) -> Find:
    """Return the request with the label of detections, if one is given.

    Raises UsageError for options that do not fit.
    """
    if label is not None:
        if request.in_ not in (ALL, "detections"):
            raise UsageError(f"got --label with a search in {request.in_}; only detections have labels")
        request = request.model_copy(update={"query": label, "in_": "detections"})
    if space is not None and request.in_ not in (ALL, "frames"):
        raise UsageError(f"got --in {request.in_} with --space, which is for frames; leave one of them out")
    if image is None and request.like is None and not request.query.strip():
        raise UsageError("got an empty query; give some words to look for, --label WORD, or --image FILE")
    return request


def show_forecast(costs: Sequence[Forecast], as_json: bool) -> None:
    from kinodex.jobs.costs import table

    if as_json:
        print_json(asdict(costs[0]))
    else:
        say(table(costs, "moments"))


def note_invalid(looked: Looked | None) -> None:
    if looked is not None and looked.invalid:
        tell(f"note: {counted(looked.calls, 'call')} of the model, {looked.invalid} without a usable reply")
