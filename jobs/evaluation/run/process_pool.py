"""Samples solved by several processes of this machine: what an agent does beside its models keeps one core busy.

Each process solves many samples side by side, as `open_solver` does. The processes write nothing: the one that started
them writes the results. `ProcessPoolExecutor` gives none of this: a process of its pool takes one task at a time, and
one that dies breaks the pool, with the tasks of all others.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count as count_from
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from index.errors import KinodexError
from jobs.child_processes import isolated_children, without_interrupts
from jobs.errors import UsageError
from jobs.evaluation.run.solve import open_solver
from jobs.evaluation.run.systems import System
from jobs.evaluation.run.types import (
    RunContext,
    SampleInput,
    Solve,
    SolvedSample,
    failed_result,
)

Job = tuple[int, System, SampleInput]

GRACE_S = 5.0
"""Time that a process may take to end when its pipe is closed: a user's own agent may block its loop for ever."""
OPENED = 0
"""The number of the message that a process has opened the library and the models; samples have higher numbers."""


@dataclass(slots=True, eq=False)
class _Member:
    """A process, and by number the replies that are pending."""

    process: BaseProcess
    pipe: Connection
    pending: dict[int, asyncio.Future[Any]]
    ended: bool = False
    joining: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def status(self) -> int | None:
        """Wait for the end of the process, and return its exit status; of two threads that wait, one gets None."""
        async with self.joining:
            await asyncio.to_thread(self.process.join)
        return self.process.exitcode

    async def end(self, grace_s: float) -> None:
        """Close the pipe, which ends the process; kill it if that takes longer. It writes nothing that could tear."""
        asyncio.get_running_loop().remove_reader(self.pipe.fileno())
        self.pipe.close()
        await asyncio.to_thread(wait, [self.process.sentinel], grace_s)
        self.process.kill()
        await self.status()

    def receive(self) -> None:
        """Take one message, a result or an error; if the process has ended, give up all that is pending."""
        try:
            number, reply = self.pipe.recv()
        except (EOFError, OSError):
            asyncio.get_running_loop().remove_reader(self.pipe.fileno())
            self.ended = True
            for future in self.pending.values():
                if not future.done():
                    future.set_result(None)
            return
        future = self.pending.pop(number)
        if isinstance(reply, Exception) and not future.done():
            future.set_exception(reply)
        elif not future.done():
            future.set_result(reply)


@asynccontextmanager
async def process_solver(context: RunContext, count: int, grace_s: float = GRACE_S) -> AsyncIterator[Solve]:
    """Give a function as `open_solver` does, of `count` processes, which share the limits of requests to models.

    At the end, samples in progress are given up; a process that does not end within `grace_s` is killed. The function
    raises what ends a run. Samples of a process that died are results with an error.
    """
    context = replace(context, choice=replace(context.choice, share=count))
    members = [_start(context) for _ in range(count)]
    numbers = count_from(OPENED + 1)

    async def solve(system: System, sample: SampleInput) -> SolvedSample:
        alive = [each for each in members if not each.ended]
        if not alive:
            raise UsageError(
                f"all {count} processes that ask have ended; run again with fewer --workers (out of memory?)"
            )
        member = min(alive, key=lambda each: len(each.pending))
        number = next(numbers)
        future = member.pending[number] = asyncio.get_running_loop().create_future()
        with suppress(BrokenPipeError):  # it ended just now, and `receive` will find out
            member.pipe.send((number, system, sample))
        solved: SolvedSample | None = await future
        if solved is not None:
            return solved
        ended = f"the process that asked ended with status {await member.status()} (out of memory?)"
        return SolvedSample(failed_result(system, sample, ended))

    try:
        await asyncio.gather(*(member.pending[OPENED] for member in members))
        yield solve
    finally:
        await asyncio.gather(*(member.end(grace_s) for member in members))


def _start(context: RunContext) -> _Member:
    spawning = get_context("spawn")
    ours, theirs = spawning.Pipe()
    process = spawning.Process(target=_work, args=(context, theirs), daemon=True)
    with without_interrupts(), isolated_children():  # this process closes the pipe, which ends them
        process.start()
    theirs.close()
    loop = asyncio.get_running_loop()
    member = _Member(process, ours, {OPENED: loop.create_future()})
    loop.add_reader(ours.fileno(), member.receive)
    return member


def _work(context: RunContext, pipe: Connection) -> None:
    asyncio.run(_serve(context, pipe))


async def _serve(context: RunContext, pipe: Connection) -> None:
    """Solve samples until the pipe is closed at the other end."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    tasks: set[asyncio.Task[None]] = set()
    async with AsyncExitStack() as stack:
        try:
            solve = await stack.enter_async_context(open_solver(context))
        except KinodexError as error:
            with suppress(ConnectionError):
                pipe.send((OPENED, error))
            return

        async def reply(number: int, system: System, sample: SampleInput) -> None:
            try:
                result: SolvedSample | Exception = await solve(system, sample)
            except Exception as error:  # whatever it is, it is raised where the reply is awaited
                error.add_note(traceback.format_exc())  # which does not cross over by itself
                result = error
            with suppress(ConnectionError):
                pipe.send((number, result))

        def receive() -> None:
            try:
                job: Job = pipe.recv()
            except (EOFError, ConnectionError):  # reset where a result was sent that nobody will read
                over.set()
                return
            task = loop.create_task(reply(*job))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        loop.add_reader(pipe.fileno(), receive)
        with suppress(ConnectionError):
            pipe.send((OPENED, None))
        await over.wait()
        loop.remove_reader(pipe.fileno())
        for task in tasks:
            task.cancel()
