"""Shares: every piece goes to one worker of one rank, nearly as many rows to each, the same in every process."""

from __future__ import annotations

import numpy as np
import pytest

from kinodex.index.datasets import Batching, Readers, batch_counts, shares
from kinodex.index.errors import QueryError


def pieces(count: int, seed: int = 1) -> np.ndarray:
    rows = np.random.default_rng(seed).integers(1, 256, count)
    return np.stack([np.arange(count), np.zeros(count, np.int64), rows], axis=1)


@pytest.mark.parametrize(("world", "workers"), [(1, 1), (1, 3), (4, 1), (3, 5)])
def test_every_piece_is_dealt_once_and_loads_are_even(world: int, workers: int) -> None:
    stock = pieces(200)
    dealt = shares(stock, Readers(world, workers), (7, 2))
    numbers = [number for rank in dealt for mine in rank for number in mine.tolist()]
    assert sorted(numbers) == list(range(200))
    loads = [int(stock[mine, 2].sum()) for rank in dealt for mine in rank]
    assert max(loads) - min(loads) <= 2 * stock[:, 2].max()


def test_seed_and_epoch_decide_the_order_and_nothing_else_does() -> None:
    stock = pieces(50)
    first, same, later = (shares(stock, Readers(2, 2), order) for order in ((3, 0), (3, 0), (3, 1)))
    assert all(np.array_equal(a, b) for x, y in zip(first, same, strict=True) for a, b in zip(x, y, strict=True))
    assert not np.array_equal(first[0][0], later[0][0])
    assert shares(stock, Readers(), None)[0][0].tolist() == list(range(50))


def test_more_workers_than_pieces_leave_some_with_nothing() -> None:
    dealt = shares(pieces(2), Readers(2, 3), (0, 0))
    assert sum(len(mine) for rank in dealt for mine in rank) == 2


@pytest.mark.parametrize("drop_last", [False, True])
def test_even_ranks_have_as_many_batches_each(drop_last: bool) -> None:
    stock = pieces(37)
    dealt = shares(stock, Readers(4, 3), (5, 5))
    free = batch_counts(stock, dealt, Batching(10, drop_last))
    even = batch_counts(stock, dealt, Batching(10, drop_last, even=True))
    assert {sum(rank) for rank in even} == {min(map(sum, free))}
    assert len({sum(rank) for rank in free}) > 1
    assert all(0 <= some <= all_ for a, b in zip(even, free, strict=True) for some, all_ in zip(a, b, strict=True))


def test_numbers_that_make_no_sense_are_refused() -> None:
    with pytest.raises(QueryError, match="got rank 2 of 2; ranks count from 0"):
        Readers(2).check(2)
    with pytest.raises(QueryError, match="a batch size of 0"):
        Batching(0).check()
