"""Lines about the towers that a library carries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from index.embedding.portable.tower_files import SpaceTowers, TowerKind, describe_tower
from index.errors import TowersDamaged
from index.store.carried_towers import held_towers

if TYPE_CHECKING:
    from index.library import Library

KINDS: tuple[TowerKind, ...] = ("text", "image")


def tower_states(library: Library) -> list[dict[str, Any]]:
    """List the towers of every space of a library, the text towers first: space, digest, kind and state.

    Image towers are left out where nothing is known of them.
    """
    states = []
    for space in library.spaces():
        try:
            towers = held_towers(library.uri, space.digest) or SpaceTowers(space)
            found = {kind: describe_tower(towers, kind) for kind in KINDS if kind == "text" or _is_known(towers, kind)}
        except TowersDamaged as error:
            found = {"text": str(error)}
        states += [
            {"space": space.name, "digest": space.digest, "tower": kind, "state": state}
            for kind, state in found.items()
        ]
    return states


def _is_known(towers: SpaceTowers, kind: TowerKind) -> bool:
    return towers.tower(kind) is not None or kind in towers.refusals
