"""Keys of frames as integers, by which vectors are brought to the rows of another table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinodex.index.errors import LibraryError
from kinodex.index.store.frame_keys import FRAME_NO_BITS

Keys = NDArray[np.int64]
"""`[rows]`: the position of a frame's video in a list of ids, then its number."""


def row_keys(table: pa.Table, ids: Sequence[str]) -> Keys:
    """Make the key of each row; all its videos have to be in `ids`."""
    position = {video_id: number for number, video_id in enumerate(ids)}
    names = table["video_id"].combine_chunks().dictionary_encode()
    of_name = np.array([position[name] for name in names.dictionary.to_pylist()], np.int64)
    keys: Keys = of_name[names.indices.to_numpy()] << FRAME_NO_BITS | table["frame_no"].to_numpy()
    return keys


def vectors_of(keys: Keys, found: pa.Table, ids: Sequence[str], uri: str) -> pa.ChunkedArray:
    """Bring the vectors of `found` into the order of `keys`; raises LibraryError for a frame that has none."""
    held = row_keys(found, ids)
    order = np.argsort(held, kind="stable")
    place = np.minimum(np.searchsorted(held, keys, sorter=order), max(len(held) - 1, 0))
    missing = np.flatnonzero(held[order[place]] != keys) if len(held) else np.arange(len(keys))
    if len(missing):
        key = int(keys[missing[0]])
        raise LibraryError(
            f"frame {key & (1 << FRAME_NO_BITS) - 1} of video {ids[key >> FRAME_NO_BITS]} in {uri} has no vector; "
            "`kinodex maintain --check` says what else is missing"
        )
    return found["vector"].take(pa.array(order[place]))
