"""Many pieces of work: limits of how many and how much, what ends them, and what is awaited and kept then."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import Any

import pytest

from kinodex.agent.errors import ModelRejected, ModelUnreachable
from kinodex.jobs.batch import Batch, Limits, in_turn
from kinodex.jobs.errors import CostReached

Begin = Callable[[int], Future[Any]]


def both_ways(limits: Limits, items: Sequence[int], work: Callable[[int], Any], done: Callable[..., Any]) -> list[Any]:
    """The error, or None, of a batch by futures and of one in an event loop; each has a batch of its own."""
    ends = list[Any]()
    for is_here in (False, True):
        batch: Batch[int] = Batch(limits, "pieces")

        async def work_here(item: int) -> Any:
            return work(item)

        try:
            if is_here:
                asyncio.run(batch.run_here(items, work_here, partial(done, batch)))
            else:
                batch.run(items, in_turn(work), partial(done, batch))
            ends.append(None)
        except (ModelUnreachable, ModelRejected, CostReached) as error:
            ends.append(error)
    return ends


def test_all_are_done_once_and_never_more_at_once_than_weigh_as_much_as_allowed() -> None:
    weights, most = [1, 1, 4, 9, 2, 2, 1, 3], 0
    under_way, done = set[int](), list[int]()
    batch: Batch[int] = Batch(Limits(4), "pieces", weight=lambda item: weights[item])
    with ThreadPoolExecutor(8) as pool:

        def begin(item: int) -> Future[int]:
            nonlocal most
            under_way.add(item)
            if len(under_way) > 1:
                most = max(most, sum(weights[each] for each in under_way))
            return pool.submit(int, item)

        def keep(item: int, result: int) -> None:
            under_way.discard(item)
            done.append(result)

        batch.run(range(8), begin, keep)
    assert (sorted(done), most) == ([*range(8)], 4), "one that weighs too much goes alone"


def test_an_endpoint_is_gone_after_different_ones_in_a_row_or_if_nothing_ever_came() -> None:
    def note(batch: Batch[int], item: int, heard: bool) -> None:
        seen.append(item)
        if heard:
            batch.heard()
        else:
            batch.unheard(item, f"no reply to {item}")

    for replies, begun, says in (
        ([True, False, False, False, True], 4, "3 different pieces in a row got no reply, the last because: no reply"),
        ([False, False, True, False, False], 5, None),
        ([False, False], 2, "none of the pieces got a reply, the last because: no reply to 1; what came is kept: run"),
    ):
        for end in both_ways(Limits(1), range(len(replies)), replies.__getitem__, note):
            assert (says is None) == (end is None) and (says or "") in str(end), replies
        assert seen == [*range(begun)] * 2, replies
        seen.clear()


seen: list[int] = []


def test_the_same_piece_again_and_again_says_nothing_of_the_endpoint() -> None:
    def note(batch: Batch[int], item: int, result: object) -> None:
        if item == 4:
            batch.heard()
        else:
            batch.unheard("the same", "no reply")

    assert both_ways(Limits(1), range(5), int, note) == [None, None]


def test_what_is_in_progress_is_awaited_whatever_ends_a_batch() -> None:
    kept, meet = list[int](), Barrier(3)
    batch: Batch[int] = Batch(Limits(3), "pieces")

    def work(item: int) -> int:
        meet.wait(60)
        if item == 0:
            raise ModelRejected("a wrong key")
        while batch.end is None:  # had one of them ended first, a fourth would begin
            time.sleep(0.001)
        return item

    with ThreadPoolExecutor(3) as pool, pytest.raises(ModelRejected, match="a wrong key"):
        batch.run(range(9), lambda item: pool.submit(work, item), lambda item, result: kept.append(result))
    assert sorted(kept) == [1, 2], "they are paid for"


def test_an_error_of_the_one_who_keeps_breaks_a_batch_off() -> None:
    def full(item: int, result: int) -> None:
        raise OSError("no space left")

    async def here() -> None:
        async def work(item: int) -> int:
            if item == 0:
                return item
            try:
                await asyncio.Event().wait()
            finally:
                cut.append(item)
            return item

        batch: Batch[int] = Batch(Limits(4), "pieces")
        await batch.run_here(range(9), work, full)

    cut = list[int]()
    with pytest.raises(OSError, match="no space"):
        asyncio.run(here())
    assert sorted(cut) == [1, 2, 3], "none outlives it"


def test_money_is_reserved_for_what_is_in_progress() -> None:
    begun = list[int]()

    def work(item: int) -> float:
        begun.append(item)
        return 1.0

    ends = both_ways(Limits(8, cost=4.0), range(9), work, lambda batch, item, cost: batch.spend(item, cost))
    assert begun == [0, 1, 2, 3] * 2
    for end in ends:
        assert isinstance(end, CostReached) and "this run cost 4, and --stop-at-cost is 4" in str(end)


def test_those_that_end_together_are_done_in_the_order_in_which_they_began() -> None:
    done = list[int]()
    batch: Batch[int] = Batch(Limits(32), "pieces")
    batch.run(range(64), in_turn(int), lambda item, result: done.append(item))
    assert done == [*range(64)]
