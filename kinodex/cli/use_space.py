"""`kinodex use-space`: make an added space the library's own."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from kinodex.cli.options import JsonOption, LibraryArgument, open_library
from kinodex.output import console, print_json, tell, tell_step


def use_space(
    library: LibraryArgument,
    space: Annotated[str, typer.Argument(help="A space that `kinodex add vectors` added: its name or digest.")],
    json: JsonOption = False,
) -> None:
    """Make an added space the library's own: all queries, and later ingests, go there at once.

    The old vectors stay, as an added space, until `kinodex remove added LIBRARY vectors OLD`.
    """
    from kinodex.index.change_space import use_space as change_space
    from kinodex.index.spaces.fingerprint import NO_SPACE

    changed = change_space(open_library(library), space, on_step=tell_step)
    if json:
        print_json(asdict(changed))
        return
    out = console()
    out.print(f"the space of {library} is {changed.space}; before it was {changed.before}", markup=False)
    if changed.before_digest not in (changed.space_digest, NO_SPACE.digest):
        command = f"kinodex remove added {library} vectors {changed.before_digest}"
        out.print(f"its old vectors are kept; `{command}` removes them", markup=False)
    if changed.note:
        tell(changed.note)
