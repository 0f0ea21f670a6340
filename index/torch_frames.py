"""Frames as batches of torch tensors: an iterable dataset for several workers and ranks, shuffled by pieces."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from kinodex.index.datasets.columns import PICTURE
from kinodex.index.datasets.plan import FramePlan
from kinodex.index.datasets.reader import FrameReader
from kinodex.index.datasets.shares import Batching, Readers, batch_counts, shares
from kinodex.index.errors import LibraryError, QueryError
from kinodex.index.pictures import STORED, NotAPicture, opened_picture

Transform = Callable[[Any], Any]
"""From a picture (`PIL.Image`, RGB) to a tensor or anything else; spawned workers have to be able to import it."""
Batch = dict[str, Any]


class FrameBatches(IterableDataset[Batch]):
    """Batches of frames, read by as many workers as a `DataLoader` has; every frame comes once an epoch.

    A batch is a dict: `vector` float16 `[n, dim]`, `time_s` float64 `[n]`, `frame_no`, `width_px` and `height_px` int32
    `[n]`, lists of texts and of `jpeg` bytes, and `image`: uint8 `[n, 3, height, width]`, or a list where sizes differ;
    with a transform what it returns, stacked where all are tensors of one shape.
    """

    def __init__(
        self,
        plan: FramePlan,
        columns: Sequence[str],
        batching: Batching,
        *,
        rank: int = 0,
        world_size: int = 1,
        seed: int | None = 0,
        buffer_rows: int = 2048,
        transform: Transform | None = None,
    ) -> None:
        """`columns` are the plan's, but `image` for what is decoded of its `jpeg`; `seed` of None: in the order stored.

        Pieces are shuffled among all ranks and workers, and rows within the pieces that a worker mixes at a time: as
        many as have `buffer_rows` rows. Raises QueryError.
        """
        super().__init__()
        batching.check()
        if seed is not None and seed < 0:
            raise QueryError(f"got seed {seed}; give 0 or more, or None for the order stored")
        Readers(world_size).check(rank)
        self.plan = plan
        self.columns = tuple(columns)
        self.rank, self.world_size = rank, world_size
        self._batching = batching
        self._seed = seed
        self._buffer_rows = buffer_rows
        self._transform = transform
        # Shared memory: workers that live on between epochs get the new number too.
        epoch: Any = torch.zeros(1, dtype=torch.int64)
        self._epoch: torch.Tensor = epoch.share_memory_()
        self._pid = os.getpid()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._pid = os.getpid()

    @property
    def versions(self) -> dict[str, int]:
        """The state that is read, for `to_torch(versions=...)` in another process or at another time."""
        return dict(self.plan.versions)

    @property
    def rows(self) -> int:
        """Number of frames of all ranks together."""
        return self.plan.rows

    def set_epoch(self, epoch: int) -> None:
        """Shuffle otherwise from the next iteration on; the same epoch gives the same order."""
        self._epoch[0] = epoch

    def batches(self, num_workers: int = 0) -> int:
        """Return the number of batches of this rank in this epoch, with this many workers."""
        dealt = shares(self.plan.pieces, Readers(self.world_size, max(num_workers, 1)), self._order())
        return sum(batch_counts(self.plan.pieces, dealt, self._batching)[self.rank])

    def loader(self, num_workers: int = 0, **options: Any) -> DataLoader[Batch]:
        """Make a `DataLoader` whose workers are spawned, since Lance cannot be used in forked ones."""
        if num_workers:
            options = {"multiprocessing_context": "spawn", "persistent_workers": True, **options}
        return DataLoader(self, batch_size=None, num_workers=num_workers, **options)

    def __iter__(self) -> Iterator[Batch]:
        if os.getpid() != self._pid:
            raise LibraryError(
                "got a worker that was forked, in which Lance may hang; use dataset.loader(num_workers=...), or "
                'DataLoader(dataset, batch_size=None, multiprocessing_context="spawn", ...)'
            )
        info = get_worker_info()
        worker, workers = (info.id, info.num_workers) if info else (0, 1)
        dealt = shares(self.plan.pieces, Readers(self.world_size, workers), self._order())
        count = batch_counts(self.plan.pieces, dealt, self._batching)[self.rank][worker]
        for table, _ in zip(self._tables(dealt[self.rank][worker], worker), range(count), strict=False):
            yield self._batch(table)

    def _order(self) -> tuple[int, ...] | None:
        return None if self._seed is None else (self._seed, int(self._epoch[0]))

    def _tables(self, mine: np.ndarray[Any, np.dtype[np.int64]], worker: int) -> Iterator[pa.Table]:
        """Read the rows of each batch, mixed with those that are read at the same time."""
        order, reader, size = self._order(), FrameReader(self.plan), self._batching.size
        mixed = None if order is None else np.random.default_rng((*order, self.rank, worker))
        least = size if mixed is None else max(self._buffer_rows, size)
        rest, first = self.plan.schema.empty_table(), 0
        while first < len(mine):
            rows = rest.num_rows + np.cumsum(self.plan.pieces[mine[first:], 2])
            until = first + int(np.searchsorted(rows, least)) + 1
            rest = pa.concat_tables([rest, reader.read(self.plan.pieces[mine[first:until]])])
            first = until
            if mixed is not None:
                rest = rest.take(mixed.permutation(rest.num_rows))
            while rest.num_rows >= size:
                yield rest.slice(0, size)
                rest = rest.slice(size)
        if rest.num_rows:
            yield rest

    def _batch(self, table: pa.Table) -> Batch:
        return {name: self._tensor(table, name) for name in self.columns}

    def _tensor(self, table: pa.Table, name: str) -> Any:
        if name == PICTURE:
            return _stacked([self._picture(jpeg) for jpeg in table["jpeg"].to_pylist()])
        column = table[name].combine_chunks()
        if pa.types.is_fixed_size_list(column.type):
            flat = column.flatten().to_numpy(zero_copy_only=False)
            return torch.from_numpy(flat.reshape(len(column), column.type.list_size).copy())
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            return torch.from_numpy(column.to_numpy(zero_copy_only=False).copy())
        return column.to_pylist()

    def _picture(self, jpeg: bytes) -> Any:
        try:
            with opened_picture(jpeg, STORED) as opened:
                picture = opened.convert("RGB")
        except NotAPicture as error:
            raise LibraryError(
                f"a stored picture of {self.plan.uri} cannot be read ({error}); "
                "`kinodex maintain --check --deep` names its video"
            ) from error
        if self._transform is not None:
            return self._transform(picture)
        return torch.from_numpy(np.array(picture)).permute(2, 0, 1)


def _stacked(pictures: list[Any]) -> Any:
    """Stack tensors of one shape; anything else stays a list."""
    same = all(isinstance(each, torch.Tensor) and each.shape == pictures[0].shape for each in pictures)
    return torch.stack(pictures) if same and pictures else pictures
