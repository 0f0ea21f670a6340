"""Options of data sets for torch, and the place of this process among those that share the frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypedDict

from kinodex.jobs.errors import UsageError

if TYPE_CHECKING:
    from kinodex.index.torch_frames import Transform


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


def place_among_ranks(options: TorchOptions) -> tuple[int, int]:
    """Read rank and number of ranks from the options, else from torch.distributed, if it was initialised."""
    from torch import distributed

    if ("rank" in options) != ("world_size" in options):
        raise UsageError("got one of rank and world_size; give both, or none")
    if "rank" in options:
        return options["rank"], options["world_size"]
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1
