"""Questions asked by Ray actors, on this machine or on a cluster. They write nothing: the driver alone keeps records.

An actor that is lost loses the questions that it had under way; they are asked again, the last time each by itself, so
that one that kills actors takes no other with it. Then it is a record with an error.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from jobs.evaluation.run.types import RunContext, SampleInput, Solve, SolvedSample, failed_result
from jobs.evaluation.run.solve import open_solver
from jobs.evaluation.run.types import System
from jobs.ray_cluster import actor_of, connected, reraise, total_resources

TRIES = 3


class SolveWorker:
    """Asks many questions side by side; runs as an actor, which opens the library with the first one."""

    def __init__(self, setting: RunContext) -> None:
        self._setting = setting
        self._opening = asyncio.Lock()
        self._opened = AsyncExitStack()
        self._ask: Solve | None = None

    async def ask(self, contender: System, asked: SampleInput) -> SolvedSample:
        async with self._opening:
            if self._ask is None:
                self._ask = await self._opened.enter_async_context(open_solver(self._setting))
        return await self._ask(contender, asked)


@dataclass(slots=True, eq=False)
class _Member:
    """An actor, and how many questions it has."""

    actor: Any
    load: int = 0


@asynccontextmanager
async def ray_solver(setting: RunContext, workers: int | None, address: str | None) -> AsyncIterator[Solve]:
    """Give a function as `open_solver` does, of so many actors (None: one a core) at `address`, or on a Ray started here.

    The limits of requests to models are shared out to them.
    """
    with connected(address):
        size = workers or max(int(total_resources().get("CPU", 1)), 1)
        crew = _Crew(replace(setting, choice=replace(setting.choice, share=size)), size)
        try:
            yield crew.ask
        finally:
            crew.close()


class _Crew:
    def __init__(self, setting: RunContext, size: int) -> None:
        self._setting = setting
        self._members = [_Member(self._actor()) for _ in range(size)]
        self._alone = asyncio.Lock()

    async def ask(self, contender: System, asked: SampleInput) -> SolvedSample:
        for _ in range(TRIES - 1):
            member = min(self._members, key=lambda each: each.load)
            outcome = await self._asked(member, contender, asked)
            if outcome is not None:
                return outcome
            self._replace(member)
        async with self._alone:
            member = _Member(self._actor())
            outcome = await self._asked(member, contender, asked)
            self._kill(member)
        lost = f"{TRIES} workers were lost over it; look for their ends in Ray's logs (out of memory?)"
        return outcome or SolvedSample(failed_result(contender, asked, lost))

    def close(self) -> None:
        for member in self._members:
            self._kill(member)

    async def _asked(self, member: _Member, contender: System, asked: SampleInput) -> SolvedSample | None:
        """What a member makes of a question; None if it was lost. Raises the KinodexError that ends its work."""
        import ray

        member.load += 1
        try:
            outcome: SolvedSample = await member.actor.ask.remote(contender, asked)
        except ray.exceptions.RayTaskError as error:
            reraise(error)
        except ray.exceptions.RayError:
            return None
        finally:
            member.load -= 1
        return outcome

    def _replace(self, lost: _Member) -> None:
        """Put a new actor in the place of a lost one, once, however many questions it had."""
        if lost in self._members:
            self._kill(lost)  # it may only be out of reach; so it certainly costs nothing more
            self._members[self._members.index(lost)] = _Member(self._actor())

    def _actor(self) -> Any:
        # It reserves no CPU: it mostly waits for models, and one that waits for a CPU would hold its questions up.
        worker = actor_of(SolveWorker).options(
            num_cpus=0, max_restarts=0, max_task_retries=0, scheduling_strategy="SPREAD"
        )
        return worker.remote(self._setting)

    def _kill(self, member: _Member) -> None:
        import ray

        ray.kill(member.actor)
