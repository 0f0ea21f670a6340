"""The clock of a question's own work: what counts, and what it costs to wait for others."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from kinodex.agent.limits import WorkClock, gather_all, held, time_limit, waiting


class Hand:
    """A time that moves by hand."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds

    def move(self, seconds: float) -> None:
        self.seconds += seconds


@pytest.fixture
def hand() -> Hand:
    return Hand()


def test_it_runs_while_anything_is_done_and_parts_at_once_count_once(hand: Hand) -> None:
    clock = WorkClock(hand)
    hand.move(100)
    with clock.working():
        hand.move(1)
        with clock.working():
            hand.move(2)
        assert clock.seconds == 3
        hand.move(4)
    hand.move(100)
    assert clock.seconds == 7


def test_a_call_does_not_count_while_it_waits(hand: Hand) -> None:
    clock = WorkClock(hand)
    with clock.serving() as service:
        hand.move(1)
        with waiting(), waiting():
            hand.move(10)
        hand.move(2)
    assert (clock.seconds, service.waited_s) == (3, 10)
    with waiting():  # outside of any call
        hand.move(5)
    assert clock.seconds == 3


def test_a_call_that_is_given_up_in_a_wait_stops_the_clock_for_good(hand: Hand) -> None:
    """The models' own thread leaves its wait only after the question has gone on."""
    clock = WorkClock(hand)
    with clock.serving() as service:
        service.pause()
        hand.move(5)
    service.resume()
    hand.move(7)
    assert (clock.seconds, service.waited_s) == (0, 5)


def test_of_two_questions_in_one_loop_each_counts_its_own_steps(hand: Hand) -> None:
    first, second = WorkClock(hand), WorkClock(hand)

    async def step(seconds: float) -> None:
        hand.move(seconds)
        await asyncio.sleep(0)
        hand.move(seconds)

    async def question(clock: WorkClock, seconds: float) -> None:
        async def work() -> None:
            await step(seconds)
            await gather_all([step(seconds), step(seconds)])

        await clock.count(work())

    async def both() -> None:
        await gather_all([question(first, 1), question(second, 100)])

    asyncio.run(both())
    assert (first.seconds, second.seconds) == (6, 600)


def test_errors_and_cancellations_pass_through_the_steps() -> None:
    clock, caught = WorkClock(), []

    async def failing() -> None:
        await asyncio.sleep(0)
        raise KeyError("inside")

    async def stubborn() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            caught.append(True)
        return "went on"

    async def run() -> str:
        with pytest.raises(KeyError, match="inside"):
            await clock.count(failing())
        task = asyncio.ensure_future(clock.count(stubborn()))
        await asyncio.sleep(0)
        task.cancel()
        return await task

    assert (asyncio.run(run()), caught) == ("went on", [True])


def test_a_slot_is_waited_for_at_no_cost_also_in_another_thread(hand: Hand) -> None:
    """As the models of an evaluation have a loop of their own, to which the call's context goes over."""
    clock, slots = WorkClock(hand), asyncio.Semaphore(1)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    reached = threading.Event()

    async def call(on_slot: Callable[[], None]) -> None:
        reached.set()
        async with held(slots):
            on_slot()

    async def run() -> None:
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(slots.acquire(), loop))
        with clock.serving():
            waits = asyncio.run_coroutine_threadsafe(call(lambda: hand.move(2)), loop)
            await asyncio.to_thread(reached.wait)
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop))
            hand.move(50)
            loop.call_soon_threadsafe(slots.release)
            await asyncio.wrap_future(waits)

    asyncio.run(run())
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
    assert clock.seconds == 2


def test_a_limit_waits_for_a_clock_that_stands_still() -> None:
    left = [0.001]
    looks: list[float] = []

    def seconds_left() -> float:
        looks.append(left[0])
        if len(looks) == 4:
            left[0] = 0.0
        return left[0]

    async def run() -> bool:
        with pytest.raises(TimeoutError):
            async with time_limit(seconds_left) as limit:
                await asyncio.Event().wait()
        return limit.expired()

    assert asyncio.run(run())
    assert looks[:3] == [0.001] * 3 and len(looks) == 4


def test_without_a_limit_nothing_is_timed() -> None:
    async def run() -> str:
        async with time_limit(lambda: None):
            await asyncio.sleep(0)
        return "done"

    assert asyncio.run(run()) == "done"
