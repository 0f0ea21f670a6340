"""Samples solved by Ray actors, on this machine or on a cluster. They write nothing: the driver writes the results.

A lost actor loses the samples that it had in progress; they are solved again, the last time each by itself, so that a
sample that kills actors takes no other with it. Then it is a result with an error.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from jobs.evaluation.run.solve import open_solver
from jobs.evaluation.run.systems import System
from jobs.evaluation.run.types import (
    RunContext,
    SampleInput,
    Solve,
    SolvedSample,
    failed_result,
)
from jobs.ray_cluster import actor_of, connected, reraise, total_resources

TRIES = 3


class SolveWorker:
    """Solves many samples side by side; runs as an actor, which opens the library with the first one."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._opening = asyncio.Lock()
        self._opened = AsyncExitStack()
        self._solve: Solve | None = None

    async def solve(self, system: System, sample: SampleInput) -> SolvedSample:
        """Solve a sample in this actor."""
        async with self._opening:
            if self._solve is None:
                self._solve = await self._opened.enter_async_context(open_solver(self._context))
        return await self._solve(system, sample)


@dataclass(slots=True, eq=False)
class _Member:
    """An actor, and the number of samples that it has in progress."""

    actor: Any
    load: int = 0


@asynccontextmanager
async def ray_solver(context: RunContext, workers: int | None, address: str | None) -> AsyncIterator[Solve]:
    """Give a function as `open_solver` does, of so many actors (None: one a core), which share the limits of requests.

    They run on the Ray cluster at `address`, or on one started here.
    """
    with connected(address):
        size = workers or max(int(total_resources().get("CPU", 1)), 1)
        pool = _ActorPool(replace(context, choice=replace(context.choice, share=size)), size)
        try:
            yield pool.solve
        finally:
            pool.close()


class _ActorPool:
    """Actors that solve samples; a lost one is replaced."""

    def __init__(self, context: RunContext, size: int) -> None:
        self._context = context
        self._members = [_Member(self._actor()) for _ in range(size)]
        self._alone = asyncio.Lock()

    async def solve(self, system: System, sample: SampleInput) -> SolvedSample:
        for _ in range(TRIES - 1):
            member = min(self._members, key=lambda each: each.load)
            solved = await self._solve_with(member, system, sample)
            if solved is not None:
                return solved
            self._replace(member)
        async with self._alone:
            member = _Member(self._actor())
            solved = await self._solve_with(member, system, sample)
            self._kill(member)
        lost = f"{TRIES} workers were lost over it; look for their ends in Ray's logs (out of memory?)"
        return solved or SolvedSample(failed_result(system, sample, lost))

    def close(self) -> None:
        for member in self._members:
            self._kill(member)

    async def _solve_with(self, member: _Member, system: System, sample: SampleInput) -> SolvedSample | None:
        """Solve a sample in one actor; None if the actor was lost. Raises the KinodexError that ends its work."""
        import ray

        member.load += 1
        try:
            solved: SolvedSample = await member.actor.solve.remote(system, sample)
        except ray.exceptions.RayTaskError as error:
            reraise(error)
        except ray.exceptions.RayError:
            return None
        finally:
            member.load -= 1
        return solved

    def _replace(self, lost: _Member) -> None:
        """Put a new actor in the place of a lost one, once, however many samples it had."""
        if lost in self._members:
            self._kill(lost)  # it may only be out of reach; so it certainly costs nothing more
            self._members[self._members.index(lost)] = _Member(self._actor())

    def _actor(self) -> Any:
        # It reserves no CPU: it mostly waits for models, and one that waits for a CPU would hold its samples up.
        worker = actor_of(SolveWorker).options(
            num_cpus=0, max_restarts=0, max_task_retries=0, scheduling_strategy="SPREAD"
        )
        return worker.remote(self._context)

    def _kill(self, member: _Member) -> None:
        import ray

        ray.kill(member.actor)
