"""Items of a benchmark solved by workers, many side by side in each; here by Ray actors.

They mostly wait for models. They write nothing; the driver writes the results.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from typing import Generic, Protocol, TypeVar

from kinodex.jobs.eval.contenders import Contender
from kinodex.jobs.eval.results import ItemInput, RunContext, Solve, SolvedItem, failed_result
from kinodex.jobs.eval.solve import open_solver
from kinodex.jobs.ray_cluster import connected
from kinodex.jobs.workers import LOST, TRIES, Actor, Crew, Worker, total_resources


class Solver(Worker, Protocol):
    """Worker that solves samples."""

    async def solve(self, system: Contender, sample: ItemInput) -> SolvedItem | None:
        """Solve a sample; None if the worker is lost over it. Raises what ends a run."""

    async def end_in_words(self) -> str:
        """Say how the worker was lost."""


S = TypeVar("S", bound=Solver)


class SolverCrew(Generic[S]):
    """Solvers; a sample that ends `TRIES` of them, the last one alone with it, is a result with an error."""

    def __init__(self, start: Callable[[], S], size: int) -> None:
        self._crew, self._lonely = Crew(start), Crew(start)
        self._size, self._alone = size, asyncio.Lock()

    def start(self) -> list[S]:
        """Start the workers at once, not with the first sample."""
        self._crew.grow(self._size)
        return self.started

    @property
    def started(self) -> list[S]:
        return [*self._crew.started, *self._lonely.started]

    async def solve(self, system: Contender, sample: ItemInput) -> SolvedItem:
        for _ in range(TRIES - 1):
            solved = await self._crew.lightest(self._size).solve(system, sample)
            if solved is not None:
                return solved
        async with self._alone:
            solver = self._lonely.lightest(1)
            solved = await solver.solve(system, sample)
        return solved or SolvedItem(failed_result(system, sample, await solver.end_in_words()))


class SolveWorker:
    """Solves many samples side by side; runs as an actor, which opens the library with the first one."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._opening = asyncio.Lock()
        self._opened = AsyncExitStack()
        self._solve: Solve | None = None

    async def solve(self, system: Contender, sample: ItemInput) -> SolvedItem:
        """Solve a sample in this actor."""
        async with self._opening:
            if self._solve is None:
                self._solve = await self._opened.enter_async_context(open_solver(self._context))
        return await self._solve(system, sample)


class _SolveActor(Actor):
    """A solver as an actor. It reserves no CPU: one that waits for a CPU would hold its samples up."""

    def __init__(self, context: RunContext) -> None:
        super().__init__(SolveWorker, context, num_cpus=0, scheduling_strategy="SPREAD")

    async def solve(self, system: Contender, sample: ItemInput) -> SolvedItem | None:
        call = self.call("solve", system, sample)
        try:
            with suppress(Exception):  # `result` has it too
                await asyncio.wrap_future(call)
        finally:
            self.calls.discard(call)  # also of a sample that was given up
        solved: SolvedItem | None = self.result(call)
        return solved

    async def end_in_words(self) -> str:
        return LOST


@asynccontextmanager
async def ray_solver(context: RunContext, workers: int | None, address: str | None) -> AsyncIterator[Solve]:
    """Give a function as `open_solver` does, of this many actors (None: one a core) at `address`, or here."""
    with connected(address):
        size = workers or max(int(total_resources().get("CPU", 1)), 1)
        context = replace(context, choice=replace(context.choice, share=size))
        crew = SolverCrew(lambda: _SolveActor(context), size)
        try:
            crew.start()
            yield crew.solve
        finally:
            for actor in crew.started:
                actor.end()
