"""Solvers as processes of this machine: what an agent does beside its models keeps one core busy.

`ProcessPoolExecutor` gives none of this: a process of its pool takes one task at a time, and one that dies breaks the
pool. A process whose agent never gives it back is lost, too. What crosses between processes is bytes and texts, so
that an error of an agent's own that cannot be read here is still an error, with its words.
"""

from __future__ import annotations

import asyncio
import pickle
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count as count_from
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import Any

from kinodex.errors import KinodexError
from kinodex.jobs.child_processes import isolated_children, without_interrupts
from kinodex.jobs.eval.contenders import Contender
from kinodex.jobs.eval.results import ItemInput, RunContext, Solve, SolvedItem
from kinodex.jobs.eval.solve import open_solver
from kinodex.jobs.eval.solvers import SolverCrew

Job = tuple[int, Contender, ItemInput] | tuple[int, None, None]
"""A number, and a sample to solve; without one only a sign of life is asked for."""
GRACE_S = 5.0
"""Time that a process may take to end when its pipe is closed: a user's own agent may block its loop for ever."""
HANG_S = 300.0
"""Time without a sign of life after which a process is ended: an agent computes, or waits, without giving it back."""
OPENED = 0
"""The number of the message that a process has opened the library and the models; samples have higher numbers."""


@dataclass(slots=True, eq=False)
class _SolveProcess:
    """A process, and by number the replies that are pending."""

    process: BaseProcess
    pipe: Connection
    pending: dict[int, asyncio.Future[Any]]
    hang_s: float
    numbers: Iterator[int] = field(default_factory=lambda: count_from(OPENED + 1))
    is_lost: bool = False
    hung: bool = False
    joining: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def load(self) -> int:
        return len(self.pending)

    async def solve(self, system: Contender, sample: ItemInput) -> SolvedItem | None:
        """Solve a sample; None if the process ends over it. Raises where it cannot open the library."""
        solved: SolvedItem | None = await self.request(system, sample)
        if solved is None:
            self.pending[OPENED].result()
        return solved

    def request(self, system: Contender | None = None, sample: ItemInput | None = None) -> asyncio.Future[Any]:
        """Send a sample, or ask for a sign of life; the future is None if the process ends before it replies."""
        number = next(self.numbers)
        future = self.pending[number] = asyncio.get_running_loop().create_future()
        if self.is_lost:
            future.set_result(None)
        with suppress(OSError):  # it ended just now, and `receive` will find out
            self.pipe.send((number, system, sample))
        return future

    async def watch(self) -> None:
        """Kill the process if it gives no sign of life for too long."""
        await asyncio.wait([self.pending[OPENED]])
        while not self.is_lost:
            alive = self.request()
            await asyncio.wait([alive], timeout=self.hang_s)
            if not alive.done():
                self.hung = True
                self.process.kill()
                return
            await asyncio.sleep(self.hang_s)

    async def end_in_words(self) -> str:
        """Say how the process ended, once it has."""
        await self.join()
        if self.hung:
            return f"the agent did not give its process back for {self.hang_s:g} s"
        return f"the process that asked ended with status {self.process.exitcode} (out of memory?)"

    async def join(self) -> None:
        """Wait for the end of the process; of two threads that wait, one would get no status."""
        async with self.joining:
            await asyncio.to_thread(self.process.join)

    async def end(self, grace_s: float) -> None:
        """Close the pipe, which ends the process; kill it if that takes longer. It writes nothing that could tear."""
        asyncio.get_running_loop().remove_reader(self.pipe.fileno())
        self.pipe.close()
        await asyncio.to_thread(wait, [self.process.sentinel], grace_s)
        self.process.kill()
        await self.join()

    def receive(self) -> None:
        """Take one message, a result or an error; if the process has ended, give up all that is pending."""
        try:
            number, content, said = self.pipe.recv()
        except (EOFError, OSError):
            asyncio.get_running_loop().remove_reader(self.pipe.fileno())
            self.is_lost = True
            for future in self.pending.values():
                if not future.done():
                    future.set_result(None)
            return
        future = self.pending[number] if number == OPENED else self.pending.pop(number)
        reply = _unpacked(content, said)
        if isinstance(reply, Exception) and not future.done():
            future.set_exception(reply)
        elif not future.done():
            future.set_result(reply)


@asynccontextmanager
async def process_solver(
    context: RunContext, count: int, grace_s: float = GRACE_S, hang_s: float = HANG_S
) -> AsyncIterator[Solve]:
    """Give a function as `open_solver` does, of `count` processes, which share the limits of requests to models.

    At the end, samples in progress are given up. A process that gives no sign of life for `hang_s` is lost.
    """
    context = replace(context, choice=replace(context.choice, share=count))
    watching: list[asyncio.Task[None]] = []

    def start() -> _SolveProcess:
        process = _start(context, hang_s)
        watching.append(asyncio.ensure_future(process.watch()))
        return process

    crew = SolverCrew(start, count)
    try:
        await asyncio.gather(*(process.pending[OPENED] for process in crew.start()))
        yield crew.solve
    finally:
        for task in watching:
            task.cancel()
        await asyncio.gather(*(process.end(grace_s) for process in crew.started))


def _start(context: RunContext, hang_s: float) -> _SolveProcess:
    spawning = get_context("spawn")
    ours, theirs = spawning.Pipe()
    process = spawning.Process(target=_work, args=(context, theirs), daemon=True)
    with without_interrupts(), isolated_children():  # this process closes the pipe, which ends them
        process.start()
    theirs.close()
    loop = asyncio.get_running_loop()
    solver = _SolveProcess(process, ours, {OPENED: loop.create_future()}, hang_s)
    loop.add_reader(ours.fileno(), solver.receive)
    return solver


def _packed(number: int, reply: object) -> tuple[int, bytes | None, str]:
    """Pack a reply so that it can be read at the other end: an error that cannot be pickled goes as its words."""
    said = f"{type(reply).__name__}: {reply}" if isinstance(reply, Exception) else ""
    try:
        return number, pickle.dumps(reply), said
    except Exception as error:  # whatever an agent's own error raises when it is pickled
        return number, None, said or f"{type(error).__name__}: {error}"


def _unpacked(content: bytes | None, said: str) -> object:
    """Unpack a reply; an error whose class is not known here, or that cannot be made again, is one with its words."""
    try:
        return RuntimeError(said) if content is None else pickle.loads(content)
    except Exception as error:
        return RuntimeError(said) if said else error


def _work(context: RunContext, pipe: Connection) -> None:
    asyncio.run(_serve(context, pipe))


async def _serve(context: RunContext, pipe: Connection) -> None:
    """Solve samples until the pipe is closed at the other end."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    tasks: set[asyncio.Task[None]] = set()

    def send(number: int, reply: object) -> None:
        with suppress(ConnectionError):
            pipe.send(_packed(number, reply))

    async with AsyncExitStack() as stack:
        try:
            solve = await stack.enter_async_context(open_solver(context))
        except KinodexError as error:
            send(OPENED, error)
            return

        async def reply(number: int, system: Contender, sample: ItemInput) -> None:
            try:
                result: SolvedItem | Exception = await solve(system, sample)
            except Exception as error:  # whatever it is, it is raised where the reply is awaited
                error.add_note(traceback.format_exc())  # which does not cross over by itself
                result = error
            send(number, result)

        def take(job: Job | None) -> None:
            if job is None:
                over.set()
            elif job[1] is None:
                send(job[0], True)
            else:
                task = loop.create_task(reply(*job))
                tasks.add(task)
                task.add_done_callback(tasks.discard)

        send(OPENED, None)
        # A thread reads, so that who sends is never held up by an agent that computes for long.
        Thread(target=_read, args=(pipe, lambda job: loop.call_soon_threadsafe(take, job)), daemon=True).start()
        await over.wait()
        for task in tasks:
            task.cancel()


def _read(pipe: Connection, take: Callable[[Job | None], object]) -> None:
    """Take jobs from the other end until that closes, and then None."""
    while True:
        try:
            job: Job | None = pipe.recv()
        except (EOFError, OSError):  # reset where a result was sent that nobody will read
            job = None
        take(job)
        if job is None:
            return
