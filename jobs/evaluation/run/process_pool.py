"""Questions asked by several processes of this machine: what an agent does beside its models keeps one core busy.

Each process puts its questions side by side, as `asking` does. They write nothing: whoever started them keeps records.
"""

from __future__ import annotations

import asyncio
import signal
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
from jobs.errors import UsageError
from jobs.evaluation.run.solve import RunContext, SampleInput, Solve, SolvedSample, failed_result, open_solver
from jobs.evaluation.run.systems import System

Job = tuple[int, System, SampleInput]


GRACE_S = 5.0
"""How long a process may take to end when it is told to: an agent of one's own may hold its loop up for ever."""
OPENED = 0
"""The number of the message that a process has opened the library and the models; questions have higher ones."""


@dataclass(slots=True, eq=False)
class _Member:
    """A process, and by number what it is waited for."""

    process: BaseProcess
    pipe: Connection
    waited_for: dict[int, asyncio.Future[Any]]
    ended: bool = False
    joining: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def status(self) -> int | None:
        """What the process ended with, once it has; of two threads that wait at once only one is told."""
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

    def heard(self) -> None:
        """Take one message, a result or an error; when the process has ended, give up what it was waited for."""
        try:
            number, result = self.pipe.recv()
        except (EOFError, OSError):
            asyncio.get_running_loop().remove_reader(self.pipe.fileno())
            self.ended = True
            for future in self.waited_for.values():
                if not future.done():
                    future.set_result(None)
            return
        future = self.waited_for.pop(number)
        if isinstance(result, Exception) and not future.done():
            future.set_exception(result)
        elif not future.done():
            future.set_result(result)


@asynccontextmanager
async def process_solver(setting: RunContext, count: int, grace_s: float = GRACE_S) -> AsyncIterator[Solve]:
    """Give a function as `open_solver` does, of `count` processes; the limits of requests to models are shared out to them.

    At the end what is under way is given up; a process that does not end within `grace_s` is killed. It raises what
    ends a run. Questions of a process that ended by itself are records with an error.
    """
    setting = replace(setting, choice=replace(setting.choice, share=count))
    members = [_begun(setting) for _ in range(count)]
    numbers = count_from(OPENED + 1)

    async def ask(contender: System, asked: SampleInput) -> SolvedSample:
        alive = [each for each in members if not each.ended]
        if not alive:
            raise UsageError(
                f"all {count} processes that ask have ended; run again with fewer --workers (out of memory?)"
            )
        member = min(alive, key=lambda each: len(each.waited_for))
        number = next(numbers)
        future = member.waited_for[number] = asyncio.get_running_loop().create_future()
        with suppress(BrokenPipeError):  # it ended just now, and `heard` will say so
            member.pipe.send((number, contender, asked))
        outcome: SolvedSample | None = await future
        if outcome is not None:
            return outcome
        ended = f"the process that asked ended with status {await member.status()} (out of memory?)"
        return SolvedSample(failed_result(contender, asked, ended))

    try:
        await asyncio.gather(*(member.waited_for[OPENED] for member in members))
        yield ask
    finally:
        await asyncio.gather(*(member.end(grace_s) for member in members))


def _begun(setting: RunContext) -> _Member:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(setting, theirs), daemon=True)
    process.start()
    theirs.close()
    loop = asyncio.get_running_loop()
    member = _Member(process, ours, {OPENED: loop.create_future()})
    loop.add_reader(ours.fileno(), member.heard)
    return member


def _work(setting: RunContext, pipe: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it closes the pipe
    asyncio.run(_serve(setting, pipe))


async def _serve(setting: RunContext, pipe: Connection) -> None:
    """Answer questions until the pipe is closed at the other end."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    tasks: set[asyncio.Task[None]] = set()
    async with AsyncExitStack() as stack:
        try:
            ask = await stack.enter_async_context(open_solver(setting))
        except KinodexError as error:
            with suppress(ConnectionError):
                pipe.send((OPENED, error))
            return

        async def answer(number: int, contender: System, asked: SampleInput) -> None:
            try:
                result: SolvedSample | Exception = await ask(contender, asked)
            except Exception as error:  # whatever it is, it is raised where the answer is waited for
                error.add_note(traceback.format_exc())  # which does not cross over by itself
                result = error
            with suppress(ConnectionError):
                pipe.send((number, result))

        def heard() -> None:
            try:
                job: Job = pipe.recv()
            except (EOFError, ConnectionError):  # reset where a result was sent that nobody will read
                over.set()
                return
            task = loop.create_task(answer(*job))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        loop.add_reader(pipe.fileno(), heard)
        with suppress(ConnectionError):
            pipe.send((OPENED, None))
        await over.wait()
        loop.remove_reader(pipe.fileno())
        for task in tasks:
            task.cancel()
