"""Tables of some kind that a library holds.

There is a table of vectors for each embedding space, beside the one that ingest fills. A space is identified by its
fingerprint's digest; the table's metadata holds the whole fingerprint. A video is visible in another space once its
addition of stage "vectors" is complete.
"""

from __future__ import annotations

from collections.abc import Iterable

from kinodex.index.errors import SpaceMismatch
from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.index.spaces.model_names import absolute_name
from kinodex.index.store.database import Tables
from kinodex.index.store.schema import LATE_TABLES, MAPPED_PREFIX, VECTORS_PREFIX, read_space


def space_tables(tables: Tables, prefix: str = VECTORS_PREFIX) -> dict[str, Fingerprint]:
    """List every table of vectors by name, with its space: of frames, or of sentences and clips by their prefix."""
    found = {}
    for name in tables.whole_names(prefix):
        found[name] = read_space(tables[name].schema, f"the table {name} of {tables.uri}")
    return found


def own_tables(tables: Tables, stage: str) -> dict[str, str]:
    """Return the tables of a stage that has one for each model, by model.

    A model is named by a space's digest, a map's name or an extract's key.
    """
    prefix = f"{stage}_"
    if stage not in ("map", "extracts"):
        return {space.digest: name for name, space in space_tables(tables, prefix).items()}
    names = tables.whole_names(prefix)
    models = [name.removeprefix(prefix) for name in names]
    keys = models if stage == "map" else ["@".join(each.rsplit("_", 1)) for each in models]
    return dict(zip(keys, names, strict=True))


def find_space(tables: Tables, name: str) -> tuple[str, Fingerprint]:
    """Find the table and fingerprint of a space, by its name or digest; raises SpaceMismatch if it is missing."""
    spaces = space_tables(tables)
    names = (name, absolute_name(name))
    matches = [(table, space) for table, space in spaces.items() if space.name in names or space.digest == name]
    if len(matches) == 1:
        return matches[0]
    held = ", ".join(sorted(f"{space.name} ({space.digest})" for space in spaces.values())) or "none"
    advice = "give a digest" if matches else "`kinodex add vectors` adds one"
    raise SpaceMismatch(f"got space {name}, and {tables.uri} holds {held}; {advice}")


def present(tables: Tables, names: Iterable[str]) -> list[str]:
    """Return those of some tables that the library has."""
    return [name for name in names if not (name in LATE_TABLES or name.startswith(MAPPED_PREFIX)) or tables.has(name)]
