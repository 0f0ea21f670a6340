"""Many frames of a library at once: as Arrow record batches, as batches of torch, and as a dataset of Ray Data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kinodex.extras import missing_package
from kinodex.jobs.errors import UsageError
from kinodex.torch_options import TorchOptions, place_among_ranks

if TYPE_CHECKING:
    import pyarrow as pa
    import ray.data

    from kinodex.index.library import LibraryReader
    from kinodex.index.torch_frames import FrameBatches

PICTURE_ROWS, OTHER_ROWS = 256, 16_384
"""Rows of a record batch with pictures, 5 MB, and without."""
SHUFFLED_ROWS = 256
"""Rows of the pieces that are shuffled; the rows of several pieces are mixed."""


def record_batches(
    reader: LibraryReader, columns: Sequence[str], videos: Sequence[str], space: str | None, *, float32: bool
) -> pa.RecordBatchReader:
    """Read frames in the order stored; see `Library.to_arrow`."""
    import pyarrow as pa

    from kinodex.index.datasets.plan import plan_frames
    from kinodex.index.datasets.reader import FrameReader

    size = PICTURE_ROWS if "jpeg" in columns else OTHER_ROWS
    plan = plan_frames(reader, columns, videos=videos, space=space, piece_rows=size)
    batches = FrameReader(plan).batches(plan.pieces)
    if not (float32 and "vector" in plan.schema.names):
        return pa.RecordBatchReader.from_batches(plan.schema, batches)
    at = plan.schema.get_field_index("vector")
    wide = pa.list_(pa.float32(), plan.schema.field(at).type.list_size)
    schema = plan.schema.set(at, plan.schema.field(at).with_type(wide))
    return pa.RecordBatchReader.from_batches(schema, (batch.cast(schema) for batch in batches))


def torch_batches(
    reader: LibraryReader, columns: Sequence[str], videos: Sequence[str], space: str | None, options: TorchOptions
) -> FrameBatches:
    """Read frames as an iterable torch dataset; see `Library.to_torch`. Raises UsageError for an unknown option."""
    if unknown := sorted(options.keys() - TorchOptions.__annotations__.keys()):
        raise UsageError(f"got {', '.join(unknown)}; to_torch takes {', '.join(TorchOptions.__annotations__)}")
    try:
        from kinodex.index.datasets.columns import stored_names
        from kinodex.index.datasets.plan import plan_frames
        from kinodex.index.datasets.shares import Batching
        from kinodex.index.torch_frames import FrameBatches
    except ModuleNotFoundError as error:
        raise missing_package(error) from error
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    batching = Batching(options.get("batch_size", 64), options.get("drop_last", False), options.get("even", False))
    rank, world_size = place_among_ranks(options)
    plan = plan_frames(
        reader,
        stored_names(names),
        videos=videos,
        space=space,
        versions=options.get("versions"),
        piece_rows=SHUFFLED_ROWS,
    )
    seed = options.get("seed", 0) if options.get("shuffle", True) else None
    buffer_rows, transform = options.get("buffer_rows", 2048), options.get("transform")
    order: dict[str, Any] = {"rank": rank, "world_size": world_size, "seed": seed, "buffer_rows": buffer_rows}
    return FrameBatches(plan, names, batching, **order, transform=transform)


def ray_dataset(
    reader: LibraryReader, columns: Sequence[str], videos: Sequence[str], space: str | None, **options: Any
) -> ray.data.Dataset:
    """Read frames as a dataset of Ray Data; see `Library.to_ray`."""
    try:
        from kinodex.jobs.export.ray_data import read_library
    except ModuleNotFoundError as error:
        raise missing_package(error) from error
    return read_library(reader, columns, videos=videos, space=space, **options)
