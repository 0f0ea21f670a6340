"""Vector tables of a library: one for each embedding space, beside the one that ingest fills.

A space is identified by its fingerprint's digest; the table's metadata holds the whole fingerprint. A video is
visible in another space once its addition of stage "vectors" is complete.
"""

from __future__ import annotations

import json

from index.embedding.model_source import absolute_name
from index.embedding.space import Fingerprint
from index.errors import SpaceMismatch
from index.store.schema import SPACE_KEY, VECTORS_PREFIX
from index.store.tables import Tables


def space_tables(tables: Tables) -> dict[str, Fingerprint]:
    """List every table of vectors by name, with the space that it holds."""
    found = {}
    for name in tables.names():
        if name.startswith(VECTORS_PREFIX) and tables.has(name):
            found[name] = Fingerprint(**json.loads(tables[name].schema.metadata[SPACE_KEY]))
    return found


def find_space(tables: Tables, name: str) -> tuple[str, Fingerprint]:
    """Find the table and fingerprint of a space, by its name or digest; raises SpaceMismatch if it is missing."""
    spaces = space_tables(tables)
    names = (name, absolute_name(name))
    matches = [(table, space) for table, space in spaces.items() if space.name in names or space.digest == name]
    if len(matches) == 1:
        return matches[0]
    held = ", ".join(sorted(f"{space.name} ({space.digest})" for space in spaces.values()))
    advice = "give a digest" if matches else "`kinodex add vectors` adds one"
    raise SpaceMismatch(f"got space {name}, and {tables.uri} holds {held}; {advice}")
