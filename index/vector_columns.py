"""Vectors as columns of Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa


def matrix_of(vectors: pa.ChunkedArray) -> NDArray[np.float16]:
    """Vectors of a column of lists, `[rows, dim]`."""
    whole = vectors.combine_chunks()
    matrix: NDArray[np.float16] = whole.flatten().to_numpy().reshape(len(whole), whole.type.list_size)
    return matrix


def with_vectors(
    video_id: str, columns: Sequence[Any], vectors: NDArray[np.floating[Any]], schema: pa.Schema
) -> pa.Table:
    """Return the rows of a video in a table of vectors, which come last `[n, dim]`.

    Raises ValueError for another dimension.
    """
    import pyarrow as pa

    vectors, dim = np.asarray(vectors, np.float16), schema.field("vector").type.list_size
    if vectors.shape != (len(columns[0]), dim):
        raise ValueError(f"vectors have shape {vectors.shape}, not [{len(columns[0])}, {dim}]")
    values = [[video_id] * len(vectors), *columns]
    arrays = [pa.array(each, field.type) for each, field in zip(values, schema, strict=False)]
    listed = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), dim)
    return pa.Table.from_arrays([*arrays, listed], schema=schema)
