"""Shares of a plan: which pieces each process reads in an epoch, none twice, and how many batches that makes."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kinodex.index.datasets.plan import Pieces
from kinodex.index.errors import QueryError


@dataclass(frozen=True, slots=True)
class Readers:
    """The processes that share a plan: `world_size` ranks, of which each has the same number of workers."""

    world_size: int = 1
    workers: int = 1

    def check(self, rank: int) -> None:
        """Raise QueryError unless this is the number of one of the ranks."""
        if not (self.world_size >= 1 and 0 <= rank < self.world_size):
            raise QueryError(f"got rank {rank} of {self.world_size}; ranks count from 0 to world_size - 1")


@dataclass(frozen=True, slots=True)
class Batching:
    """Size of batches, and how those of a share end."""

    size: int
    drop_last: bool = False
    """Leave out the last batch of a worker if it is not full."""
    even: bool = False
    """Give every rank as many batches as the rank that has fewest."""

    def check(self) -> None:
        """Raise QueryError for a size below 1."""
        if self.size < 1:
            raise QueryError(f"got a batch size of {self.size}; give 1 or more")

    def count(self, rows: int) -> int:
        """Return the number of batches that these rows make."""
        return rows // self.size if self.drop_last else -(-rows // self.size)


def shares(pieces: Pieces, readers: Readers, seed: tuple[int, ...] | None) -> list[list[NDArray[np.int64]]]:
    """Deal the pieces to the workers of all ranks, `[rank][worker]`: the numbers of its pieces in its order.

    Each piece goes to who has the fewest rows so far, so that shares differ by one piece at most. `seed` shuffles the
    pieces first, the same in every process.
    """
    order = np.arange(len(pieces)) if seed is None else np.random.default_rng(seed).permutation(len(pieces))
    by_rank = [order[dealt] for dealt in _deal(pieces[order, 2], readers.world_size)]
    return [[mine[dealt] for dealt in _deal(pieces[mine, 2], readers.workers)] for mine in by_rank]


def _deal(rows: NDArray[np.int64], hands: int) -> list[NDArray[np.int64]]:
    """Deal pieces of this many rows one after another, each to the hand with the fewest rows."""
    if hands == 1:
        return [np.arange(len(rows))]
    loads = [(0, hand) for hand in range(hands)]
    dealt: list[list[int]] = [[] for _ in range(hands)]
    for number, count in enumerate(rows.tolist()):
        load, hand = heapq.heappop(loads)
        dealt[hand].append(number)
        heapq.heappush(loads, (load + count, hand))
    return [np.array(each, np.int64) for each in dealt]


def batch_counts(pieces: Pieces, dealt: list[list[NDArray[np.int64]]], batching: Batching) -> list[list[int]]:
    """Return the number of batches of every worker, `[rank][worker]`; with `even` all ranks have the same sum."""
    counts = [[batching.count(int(pieces[mine, 2].sum())) for mine in of_rank] for of_rank in dealt]
    if batching.even:
        least = min(map(sum, counts))
        for of_rank in counts:
            for _ in range(sum(of_rank) - least):
                of_rank[of_rank.index(max(of_rank))] -= 1
    return counts
