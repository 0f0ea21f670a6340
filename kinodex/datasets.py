"""Many frames of a library at once: as Arrow batches, and as datasets of torch and Ray."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from index.datasets.columns import stored_names
from index.datasets.plan import plan_frames
from jobs.errors import EXTRAS, UsageError

if TYPE_CHECKING:
    import pyarrow as pa
    import ray.data

    from index.datasets.torch_frames import FrameBatches, Transform
    from index.library_reader import LibraryReader
    from index.rows import VideoRow

PICTURE_ROWS, OTHER_ROWS = 256, 16_384
"""Rows of a record batch with pictures, 5 MB, and without."""
SHUFFLED_ROWS = 256
"""Rows of the pieces that are shuffled; the rows of several pieces are mixed."""


class TorchOptions(TypedDict, total=False):
    """Options of `Library.to_torch`, all of which have a default."""

    batch_size: int
    """Frames of a batch: 64."""
    drop_last: bool
    """Leave out each worker's last batch if it is not full; False."""
    shuffle: bool
    """Shuffle pieces of 256 frames, and the frames of those that are mixed; True. Otherwise the order stored."""
    seed: int
    """With the epoch (`set_epoch`) it decides the order; 0."""
    buffer_rows: int
    """Frames that a worker mixes at a time: 2048, 40 MB of pictures."""
    rank: int
    """Number of this process among those that share the frames; that of torch.distributed where it runs, else 0."""
    world_size: int
    """How many processes share the frames; as `rank`, else 1."""
    even: bool
    """Give every rank as many batches as the one with fewest, which leaves some frames out; False."""
    transform: Transform
    """A function from a picture (PIL, RGB) to what `image` holds of it; tensors of one shape are stacked."""
    versions: Mapping[str, int]
    """The state to read: `versions` of another dataset with the same columns; the newest."""


def arrow_reader(
    reader: LibraryReader, columns: Sequence[str], videos: Sequence[str], space: str | None, float32: bool
) -> pa.RecordBatchReader:
    """Read frames as record batches; see `Library.to_arrow`."""
    import pyarrow as pa

    from index.datasets.read_frames import FrameReader

    rows = PICTURE_ROWS if "jpeg" in columns else OTHER_ROWS
    plan = plan_frames(reader, columns, videos=videos, space=space, piece_rows=rows)
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
    """Make a dataset of torch; see `Library.to_torch`. Raises UsageError for unknown options, and without torch."""
    unknown = sorted(options.keys() - TorchOptions.__annotations__.keys())
    if unknown:
        raise UsageError(f"got {', '.join(unknown)}; to_torch takes {', '.join(TorchOptions.__annotations__)}")
    try:
        from index.datasets.shares import Batching
        from index.datasets.torch_frames import FrameBatches
    except ModuleNotFoundError as error:
        raise _missing(error) from error
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    batching = Batching(options.get("batch_size", 64), options.get("drop_last", False), options.get("even", False))
    rank, world_size = _place_among_ranks(options)
    plan = plan_frames(
        reader,
        stored_names(names),
        videos=videos,
        space=space,
        versions=options.get("versions"),
        piece_rows=SHUFFLED_ROWS,
    )
    return FrameBatches(
        plan,
        names,
        batching,
        rank=rank,
        world_size=world_size,
        seed=options.get("seed", 0) if options.get("shuffle", True) else None,
        buffer_rows=options.get("buffer_rows", 2048),
        transform=options.get("transform"),
    )


def _place_among_ranks(options: TorchOptions) -> tuple[int, int]:
    """Read rank and number of ranks from the options, else from torch.distributed, if it was initialised."""
    from torch import distributed

    if ("rank" in options) != ("world_size" in options):
        raise UsageError("got one of rank and world_size; give both, or none")
    if "rank" in options:
        return options["rank"], options["world_size"]
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1


def ray_dataset(
    reader: LibraryReader, columns: Sequence[str], videos: Sequence[str], space: str | None, options: Mapping[str, Any]
) -> ray.data.Dataset:
    """Make a dataset of Ray Data; see `Library.to_ray`. Raises UsageError without Ray."""
    try:
        from jobs.export.ray_data import read_library
    except ModuleNotFoundError as error:
        raise _missing(error) from error
    return read_library(reader, columns, videos=videos, space=space, **options)


def _missing(error: ModuleNotFoundError) -> Exception:
    """Make the error for an optional package that is not installed; any other module's is a fault of the program."""
    package = (error.name or "").partition(".")[0]
    if package not in EXTRAS:
        return error
    return UsageError(
        f"this needs the package {package}, which is not installed; pip install 'kinodex[{EXTRAS[package]}]'"
    )


def vectors_table(reader: LibraryReader, videos: Sequence[VideoRow], space: str | None) -> pa.Table:
    """Read numbers, times and vectors of some videos as one table; raises UsageError if there are none."""
    import pyarrow as pa

    parts = []
    for row in videos:
        stored = reader.vectors(row.video_id, space)
        flat = pa.array(stored.vectors.reshape(-1))
        columns = {
            "video_id": pa.array([row.video_id] * len(stored.frame_no), pa.string()),
            "frame_no": pa.array(stored.frame_no),
            "time_s": pa.array(stored.time_s),
            "vector": pa.FixedSizeListArray.from_arrays(flat, stored.vectors.shape[1]),
        }
        parts.append(pa.table(columns))
    if not parts:
        raise UsageError(f"{reader.uri} holds no video; ingest one first")
    return pa.concat_tables(parts)
