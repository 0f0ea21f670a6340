"""Workers of long runs: Ray actors, here or on a cluster, and processes of this machine.

A lost worker is replaced. What it had in progress is done again by others, the last times by itself, so that a piece of
work that ends workers takes no other with it; it is set apart once it has ended `TRIES`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import signal
import socket
import threading
import traceback
import warnings
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future
from concurrent.futures import wait as wait_for
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from itertools import count as count_from
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import Any, Generic, NoReturn, Protocol, TypeVar

from kinodex.agent.errors import GONE_AFTER, ModelUnreachable
from kinodex.errors import KinodexError
from kinodex.index.library import Library
from kinodex.index.rows import VideoRow
from kinodex.jobs.add.run import Addition, ConcurrentAddition, Executor, LeaseKey, VideoOutcome, add_in_process
from kinodex.jobs.child_processes import isolated_children, without_interrupts
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.contenders import Contender, ItemInput, RunContext, Solve, SolvedItem, failed_result
from kinodex.jobs.eval.solve import open_solver

TRIES = 3
"""Workers that a piece of work may end before it is taken for the cause."""
LOST = f"{TRIES} workers were lost over it; look for their ends in Ray's logs (out of memory?)"


class Worker(Protocol):
    """A worker that does pieces of work side by side."""

    @property
    def is_lost(self) -> bool:
        """True once it has ended, or was killed because it is out of reach."""

    @property
    def load(self) -> int:
        """Number of pieces of work that it has in progress."""


W = TypeVar("W", bound=Worker)


class Crew(Generic[W]):
    """Workers, each by its number; in the place of a lost one another is started, under a number of its own."""

    def __init__(self, start: Callable[[], W]) -> None:
        self._start = start
        self.started: list[W] = []
        """All that there were, the lost ones included."""

    @property
    def there(self) -> dict[int, W]:
        """Those that are not lost."""
        return {number: each for number, each in enumerate(self.started) if not each.is_lost}

    def grow(self, size: int) -> range:
        """Start workers until so many are there; returns the numbers of the new ones."""
        first, lacking = len(self.started), size - len(self.there)
        for _ in range(lacking):
            self.started.append(self._start())
        return range(first, len(self.started))

    def lightest(self, size: int) -> W:
        """The worker of `size` with the least in progress, once lost ones are replaced."""
        self.grow(size)
        return min(self.there.values(), key=lambda each: each.load)


class Actor:
    """A worker as a Ray actor. What Ray would do again by itself is left to us: it knows nothing of rows and leases."""

    def __init__(self, kind: type, *arguments: Any, **options: Any) -> None:
        made = actor_of(kind).options(max_restarts=0, max_task_retries=0, **options)
        self.handle = made.remote(*arguments)
        self.is_lost = False
        self.calls: set[Future[Any]] = set()
        """Those whose end nobody has taken."""

    @property
    def load(self) -> int:
        return len(self.calls)

    def call(self, method: str, *arguments: Any) -> Future[Any]:
        """Begin a call; `result` takes its end."""
        call: Future[Any] = getattr(self.handle, method).remote(*arguments).future()
        self.calls.add(call)
        return call

    def result(self, call: Future[Any]) -> Any:
        """Result of a call that has ended; None if the actor was lost. Raises the error of ours that ended its work."""
        import ray

        self.calls.discard(call)
        try:
            return call.result()
        except ray.exceptions.RayTaskError as error:
            reraise(error)
        except ray.exceptions.RayError:
            self.end()  # it may only be out of reach; so it certainly writes nothing more
            return None

    def end(self) -> None:
        """Kill the actor."""
        import ray

        self.is_lost = True
        ray.kill(self.handle)


def actor_of(kind: type) -> Any:
    """Make a class one whose instances are Ray actors."""
    import ray

    return ray.remote(kind)


def total_resources() -> dict[str, float]:
    """CPUs, GPUs and other resources of all nodes that are in the cluster now, busy or not."""
    from ray import cluster_resources

    untyped: Any = cluster_resources
    found: dict[str, float] = untyped()
    return found


def reraise(error: Exception) -> NoReturn:
    """Raise the error that ended a task: the one of ours that it carries, else the task's as it is."""
    cause = getattr(error, "cause", None) or error.__cause__
    if isinstance(cause, KinodexError):
        raise cause from error
    raise error


# The connection to a Ray cluster.

CONNECT_S = 10.0


@contextmanager
def connected(address: str | None) -> Iterator[None]:
    """Connect to Ray at `address`, else at RAY_ADDRESS, as in a Ray job; else start it here until the end.

    Raises UsageError if there is no cluster at the address.
    """
    import ray

    if ray.is_initialized():
        yield
        return
    with restored_process():
        _init(address or os.environ.get("RAY_ADDRESS") or "local")
        try:
            yield
        finally:
            ray.shutdown()


@contextmanager
def restored_process() -> Iterator[None]:
    """Put back at the end what Ray changes in this process: variables and the SIGTERM handler."""
    before, handler = _ray_variables(), signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        for name in _ray_variables().keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)


def _ray_variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith("RAY_") or name == "PYTHONBREAKPOINT"}


def _init(address: str) -> None:
    import ray
    from ray.job_config import JobConfig

    try:
        host, _, port = address.rpartition("/")[2].rpartition(":")
        if host and port.isdigit():  # to one that accepts no connections Ray would try for minutes
            socket.create_connection((host, int(port)), CONNECT_S).close()
        with warnings.catch_warnings():
            # Lance warns of forks; the processes that Ray starts here run another program at once.
            warnings.filterwarnings("ignore", message="lance is not fork-safe", category=UserWarning)
            ray.init(
                address=address,
                # As a client's job: else the working directory is the first place where workers look for imports.
                job_config=JobConfig(_client_job=True),
                log_to_driver=False,
                logging_level=logging.ERROR,
                include_dashboard=False if address == "local" else None,
            )
    except (OSError, RuntimeError, ValueError) as error:
        reason = str(error).strip().splitlines()[0][:200]
        raise UsageError(
            f"cannot reach Ray at {address}: {reason}; give the address of a running cluster, "
            "or --ray without one to start Ray here"
        ) from error


# Rows added to videos by actors (`kinodex add --ray`), which load the model once and take a few videos at a time.
#
# They write the rows themselves; the driver shows them to readers.

VIDEOS_A_BUNDLE = 4


@dataclass(frozen=True, slots=True)
class Bundle:
    """Videos for one actor, and the times that nothing came of them."""

    videos: tuple[VideoRow, ...]
    losses: int = 0

    @property
    def ids(self) -> list[str]:
        return [each.video_id for each in self.videos]


class AddWorker:
    """Worker that adds rows to videos; runs as an actor."""

    def __init__(self, uri: str, addition: Addition, lease: LeaseKey) -> None:
        self._library = Library.open(uri)
        self._addition = addition
        self._lease = lease

    def add(self, videos: Sequence[VideoRow]) -> list[VideoOutcome]:
        return list(chain.from_iterable(add_in_process(self._library, self._addition, videos, self._lease)))


@contextmanager
def ray_executor(workers: int | None, address: str | None) -> Iterator[Executor]:
    """Connect to the cluster at `address`, or start one, for so many actors (None: one a GPU, else one a core)."""
    with connected(address):
        yield partial(add_on_ray, workers)


def add_on_ray(
    workers: int | None, library: Library, addition: Addition, videos: Sequence[VideoRow], lease: LeaseKey
) -> Generator[list[VideoOutcome], None, None]:
    """Add rows as `add_in_process` does; raises the PipelineError or KinodexError that ends an actor's work.

    A bundle whose actor was lost, or to which an endpoint gave no reply at all, is deleted and retried video by video.
    The endpoint is gone if that happens to several bundles in a row, or to all.
    """
    gpus = 0.0 if addition.device == "cpu" else total_resources().get("GPU", 0.0)
    size = workers or int(gpus or total_resources().get("CPU", 1)) or 1
    most = max(1, min(VIDEOS_A_BUNDLE, len(videos) // (2 * size)))  # so that every actor gets two
    waiting = deque(Bundle(tuple(videos[first : first + most])) for first in range(0, len(videos), most))
    size = min(size, len(waiting))
    if isinstance(addition, ConcurrentAddition):
        addition = addition.share(size or 1)
    needs = {"num_gpus": 1} if gpus else {"num_cpus": 1}
    crew = Crew(lambda: Actor(AddWorker, library.uri, addition, lease, **needs))
    running: dict[Future[Any], tuple[Actor, Bundle]] = {}
    unheard: set[str] = set()
    """The first video of each bundle without any reply, since the last one that had some."""
    anything_heard = False
    try:
        while waiting or running:
            while waiting and len(running) < size:
                actor, bundle = crew.lightest(size), waiting.popleft()
                running[actor.call("add", bundle.videos)] = actor, bundle
            for call in wait_for(running, return_when=FIRST_COMPLETED).done:
                actor, bundle = running.pop(call)
                problem, error_class = f"{LOST}, or lower --batch", "WorkerLost"
                try:
                    outcomes: list[VideoOutcome] | None = actor.result(call)
                    if outcomes is not None:
                        unheard, anything_heard = set(), True
                except ModelUnreachable as error:
                    outcomes, problem, error_class = None, str(error), type(error).__name__
                    unheard.add(bundle.videos[0].video_id)
                    is_last = bundle.losses + 1 == TRIES and not (waiting or running)
                    if len(unheard) >= GONE_AFTER or (is_last and not anything_heard):
                        raise
                if outcomes is None:
                    complete = library.visible.models(addition.name)  # by an earlier run: that stays
                    begun = [id_ for id_ in bundle.ids if addition.model not in complete.get(id_, ())]
                    library.additions.discard(addition.name, addition.model, *begun)
                    if bundle.losses + 1 < TRIES:
                        waiting += [Bundle((video,), bundle.losses + 1) for video in bundle.videos]
                        continue
                    outcomes = [VideoOutcome.failed(video, problem, error_class) for video in bundle.videos]
                yield outcomes
    finally:
        for actor in crew.there.values():
            actor.end()


# Samples of benchmarks solved by actors or by processes, many side by side in each.
#
# They mostly wait for models. They write nothing; the driver writes the results.


class Solver(Worker, Protocol):
    """Worker that solves samples."""

    async def solve(self, system: Contender, sample: ItemInput) -> SolvedItem | None:
        """Solve a sample; None if the worker is lost over it. Raises what ends a run."""

    async def end_in_words(self) -> str:
        """Say how the worker was lost."""


S = TypeVar("S", bound=Solver)


class _SolverCrew(Generic[S]):
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
    """Give a function as `open_solver` does, of so many actors (None: one a core) at `address`, or here."""
    with connected(address):
        size = workers or max(int(total_resources().get("CPU", 1)), 1)
        context = replace(context, choice=replace(context.choice, share=size))
        crew = _SolverCrew(lambda: _SolveActor(context), size)
        try:
            crew.start()
            yield crew.solve
        finally:
            for actor in crew.started:
                actor.end()


# Solvers as processes of this machine: what an agent does beside its models keeps one core busy.
#
# `ProcessPoolExecutor` gives none of this: a process of its pool takes one task at a time, and one that dies breaks the
# pool. A process whose agent never gives it back is lost, too. What crosses between processes is bytes and texts, so
# that an error of an agent's own that cannot be read here is still an error, with its words.

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

    crew = _SolverCrew(start, count)
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
