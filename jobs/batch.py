"""Batches of work that ask models, within a limit of how many run together and of what they cost.

If an endpoint does not reply to one piece of work, that piece has failed. If several different ones in a row get no
reply, or none of all, the endpoint is gone. When a batch ends early no further piece begins, and those in progress are
awaited, because they are paid for.

batch = Batch(Limits(at_once=8, cost=2.0), "questions")
batch.run(questions, begin, done)  # `begin` starts one and gives its future, `done` gets it with its result
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection, Generator, Hashable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from kinodex.agent.errors import ModelUnreachable
from kinodex.agent.limits.work_clock import counted
from kinodex.jobs.errors import CostReached

T = TypeVar("T")
I = TypeVar("I")  # noqa: E741 - an item
KEPT = "what came is kept"
GONE_AFTER = 3
"""Different pieces of work in a row without a reply, after which an endpoint is gone: one may be too hard."""
CENT = 1e-9
"""Share of a limit of money by which sums of costs may be off."""


@dataclass(slots=True)
class Purse:
    """Money of a run: the limit, what is spent, and what the work in progress is expected to cost.

    That is as much as the costliest so far of its kind, of which the first goes alone: it may cost anything.
    """

    limit: float | None = None
    spent: float = 0.0
    dearest: dict[str, float] = field(default_factory=dict)
    under_way: Counter[str] = field(default_factory=Counter)

    @property
    def is_empty(self) -> bool:
        return self.limit is not None and self.spent >= self.limit

    @property
    def left(self) -> float | None:
        """Money that may still be spent; None without a limit."""
        return None if self.limit is None else self.limit - self.spent

    def allows(self, kind: str) -> bool:
        """Return True if there is money for a piece of work of a kind beside those in progress."""
        if self.limit is None:
            return True
        kinds = self.under_way + Counter([kind])
        if not self.dearest.keys() >= kinds.keys():
            return not self.under_way.total() and not self.is_empty
        expected = sum(count * self.dearest[name] for name, count in kinds.items())
        return self.spent + expected <= self.limit * (1 + CENT)

    def learn(self, kind: str, cost: float) -> None:
        """Learn what a piece of work of a kind may cost."""
        self.dearest[kind] = max(self.dearest.get(kind, 0.0), cost)

    def reached(self, kind: str = "", kept: str = KEPT) -> CostReached:
        """Say that no further piece of work may begin."""
        limit, expected = self.limit or 0.0, self.dearest.get(kind, 0.0)
        beside = "" if self.is_empty else f", the next may cost {expected:.4g}"
        todo = "run again to go on, for as much again" if self.spent else "raise it to go on"
        return CostReached(f"this run cost {self.spent:.4g}{beside}, and --stop-at-cost is {limit:g}; {kept}: {todo}")


class Silence:
    """The pieces of work in a row to which an endpoint gave no reply; it is gone after `GONE_AFTER` different ones."""

    def __init__(self) -> None:
        self._unheard: dict[Hashable, str] = {}
        self._is_broken = False

    def heard(self) -> None:
        """Note that a reply came."""
        self._unheard.clear()
        self._is_broken = True

    def unheard(self, what: Hashable, why: object) -> None:
        """Note that none came to a piece of work."""
        self._unheard[what] = str(why)

    def gone(self, things: str, kept: str = KEPT, *, is_over: bool = False) -> ModelUnreachable | None:
        """Return the error of an endpoint that is gone, in words about the pieces of work; None while it is there.

        When all `is_over` it is gone too if no reply ever came.
        """
        count = len(self._unheard)
        if count < GONE_AFTER and not (is_over and count and not self._is_broken):
            return None
        what = f"none of the {things} got a reply" if is_over else f"{count} different {things} in a row got no reply"
        return ModelUnreachable(
            f"{what}, the last because: {[*self._unheard.values()][-1]}; {kept}: run again to go on"
        )


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a batch: how many pieces of work are in progress together, or how much they weigh; and its cost."""

    at_once: int = 1
    cost: float | None = None


@dataclass(slots=True)
class Batch(Generic[I]):
    """A run over many pieces of work. `things` is what they are called in its errors, `kept` what those who go on find.

    Pieces of a `kind` are expected to cost alike. What `done` learns from a result it says by `spend`, `heard`,
    `unheard` and `stop`; an error of a piece of work itself stops the batch, and one of `done` breaks it off.
    """

    limits: Limits
    things: str
    kept: str = KEPT
    kind: Callable[[I], str] = lambda item: ""
    weight: Callable[[I], int] = lambda item: 1
    end: BaseException | None = None
    """What ends it: no further piece of work begins."""
    silence: Silence = field(default_factory=Silence)
    purse: Purse = field(init=False)
    waiting: deque[I] = field(default_factory=deque)
    """Pieces of work that have not begun; `done` may add to them."""

    def __post_init__(self) -> None:
        self.purse = Purse(self.limits.cost)

    def run(self, items: Iterable[I], begin: Callable[[I], Future[T]], done: Callable[[I, T], object]) -> None:
        """Begin pieces of work while the limits allow it, and give each with its result to `done` as it ends.

        Raises what ended it before the last one began.
        """
        steps = self._steps(items, begin, done)
        try:
            under_way = next(steps)
            while True:
                under_way = steps.send(wait(under_way, return_when=FIRST_COMPLETED).done)
        except StopIteration:
            return
        finally:
            steps.close()

    async def run_here(
        self, items: Iterable[I], work: Callable[[I], Awaitable[T]], done: Callable[[I, T], object]
    ) -> None:
        """Do the same by tasks of this event loop; none outlives it."""
        tasks: set[asyncio.Future[T]] = set()

        def begin(item: I) -> asyncio.Future[T]:
            task = asyncio.ensure_future(counted(work(item)))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            return task

        steps = self._steps(items, begin, done)
        try:
            under_way = next(steps)
            while True:
                ended, _ = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
                under_way = steps.send(ended)
        except StopIteration:
            return
        finally:
            steps.close()
            await asyncio.gather(*tasks, return_exceptions=True)

    def spend(self, item: I, cost: float, *, is_typical: bool = True) -> None:
        """Note what a piece of work cost, from which the cost of others is expected if it is typical."""
        self.purse.spent += cost
        if is_typical:
            self.purse.learn(self.kind(item), cost)

    def heard(self) -> None:
        """Note that the endpoint gave a reply."""
        self.silence.heard()

    def unheard(self, what: Hashable, why: object) -> None:
        """Note that the endpoint gave none to a piece of work; one too many ends the batch."""
        self.silence.unheard(what, why)
        if gone := self.silence.gone(self.things, self.kept):
            self.stop(gone)

    def stop(self, why: BaseException) -> None:
        """Begin no further piece of work; the first reason counts."""
        self.end = self.end or why

    def _steps(
        self, items: Iterable[I], begin: Callable[[I], Any], done: Callable[[I, T], object]
    ) -> Generator[Collection[Any], Collection[Any], None]:
        """Yield the futures of the pieces of work in progress, and take those that ended."""
        self.waiting.extend(items)
        under_way: dict[Any, I] = {}
        try:
            while True:
                while self.waiting and self._may_begin(self.waiting[0], under_way.values()):
                    item = self.waiting.popleft()
                    self.purse.under_way[self.kind(item)] += 1
                    under_way[begin(item)] = item
                if not under_way:
                    break
                ended = yield under_way.keys()
                for future in [each for each in under_way if each in ended]:  # in the order in which they began
                    item = under_way.pop(future)
                    self.purse.under_way -= Counter([self.kind(item)])
                    if (error := future.exception()) is None:
                        done(item, future.result())
                    else:
                        self.stop(error)
        finally:
            for future in under_way:  # none is left, unless the batch is broken off
                future.cancel()
        if self.waiting and self.end is None:
            self.end = self.purse.reached(self.kind(self.waiting[0]), self.kept)
        if end := self.end or self.silence.gone(self.things, self.kept, is_over=True):
            raise end

    def _may_begin(self, item: I, under_way: Collection[I]) -> bool:
        if self.end is not None or not self.purse.allows(self.kind(item)):
            return False
        return not under_way or sum(map(self.weight, under_way)) + self.weight(item) <= self.limits.at_once


def in_turn(work: Callable[[I], T]) -> Callable[[I], Future[T]]:
    """Make of a function that works one that gives a future, which has the result already."""

    def begin(item: I) -> Future[T]:
        future: Future[T] = Future()
        try:
            future.set_result(work(item))
        except Exception as error:
            future.set_exception(error)
        return future

    return begin
