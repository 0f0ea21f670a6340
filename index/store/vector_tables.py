"""Further embedding spaces of a library: a table of vectors each, beside the one that ingest fills.

A space is known by its fingerprint's digest; the table says the whole fingerprint in its metadata. A video is
seen in another space once its addition of stage "vectors" is complete.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from index.embedding.names import everywhere
from index.embedding.space import Fingerprint
from index.errors import SpaceMismatch
from index.rows import FrameVectors
from index.store.schema import SPACE_KEY, VECTORS_PREFIX, vectors_schema, vectors_table
from index.store.tables import Tables


def add_space(tables: Tables, fingerprint: Fingerprint) -> None:
    """Make the table of a space; nothing happens where there is one."""
    tables.create(vectors_table(fingerprint), vectors_schema(fingerprint))


def space_tables(tables: Tables) -> dict[str, Fingerprint]:
    """Every table of vectors by name, with the space that it holds."""
    found = {}
    for name in tables.names():
        if name.startswith(VECTORS_PREFIX) and tables.has(name):
            found[name] = Fingerprint(**json.loads(tables[name].schema.metadata[SPACE_KEY]))
    return found


def find_space(tables: Tables, wanted: str) -> tuple[str, Fingerprint]:
    """The table and fingerprint of a space, by its name or digest; raises SpaceMismatch if it is not here."""
    spaces = space_tables(tables)
    names = (wanted, everywhere(wanted))
    named = [(name, space) for name, space in spaces.items() if space.name in names or space.digest == wanted]
    if len(named) == 1:
        return named[0]
    held = ", ".join(sorted(f"{space.name} ({space.digest})" for space in spaces.values()))
    way_on = "give a digest" if named else "`kinodex add vectors` adds one"
    raise SpaceMismatch(f"got space {wanted}, and {tables.uri} holds {held}; {way_on}")


def add_vectors(tables: Tables, fingerprint: Fingerprint, videos: Mapping[str, FrameVectors]) -> None:
    """See Library.add_vectors; raises ValueError for vectors of another dimension than the space's."""
    schema = vectors_schema(fingerprint)
    parts = [_arrow(video_id, rows, fingerprint.dim, schema) for video_id, rows in videos.items()]
    if parts:
        tables.append(vectors_table(fingerprint), pa.concat_tables(parts))


def _arrow(video_id: str, rows: FrameVectors, dim: int, schema: pa.Schema) -> pa.Table:
    vectors = np.asarray(rows.vectors, np.float16)
    if vectors.shape != (len(rows.frame_no), dim):
        raise ValueError(f"vectors have shape {vectors.shape}, not [{len(rows.frame_no)}, {dim}]")
    columns = [
        pa.array([video_id] * len(vectors), pa.string()),
        pa.array(rows.frame_no, pa.int32()),
        pa.array(rows.time_s, pa.float64()),
        pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), dim),
    ]
    return pa.Table.from_arrays(columns, schema=schema)
