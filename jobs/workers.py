"""Connection to a Ray cluster, its resources, and the errors that come back from it."""

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
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count as count_from
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import Any, NoReturn

from kinodex.index.errors import KinodexError
from kinodex.index.library import Library
from kinodex.index.rows import VideoRow
from kinodex.jobs.add.run import ConcurrentStage, Executor, LeaseKey, Stage, VideoOutcome, add_in_process
from kinodex.jobs.child_processes import isolated_children, without_interrupts
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.contenders import Contender, ItemInput, RunContext, Solve, SolvedItem, failed_result
from kinodex.jobs.eval.solve import open_solver
from kinodex.pipeline.errors import PipelineError

CONNECT_S = 10.0


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


def _init(address: str) -> None:
    import ray
    from ray.job_config import JobConfig

    is_ours = address == "local"
    try:
        _check_listening(address)
        with warnings.catch_warnings():
            # Lance warns of forks; the processes that Ray starts here run another program at once.
            warnings.filterwarnings("ignore", message="lance is not fork-safe", category=UserWarning)
            ray.init(
                address=address,
                # As a client's job: else the working directory is the first place where workers look for imports.
                job_config=JobConfig(_client_job=True),
                log_to_driver=False,
                logging_level=logging.ERROR,
                include_dashboard=False if is_ours else None,
            )
    except (OSError, RuntimeError, ValueError) as error:
        reason = str(error).strip().splitlines()[0][:200]
        raise UsageError(
            f"cannot reach Ray at {address}: {reason}; give the address of a running cluster, "
            "or --ray without one to start Ray here"
        ) from error


def _check_listening(address: str) -> None:
    """Check that HOST:PORT accepts connections, else raise OSError: Ray itself would try for minutes."""
    host, _, port = address.rpartition("/")[2].rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), CONNECT_S).close()


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
    if isinstance(cause, KinodexError | PipelineError):
        raise cause from error
    raise error


# Samples solved by Ray actors, on this machine or on a cluster. They write nothing: the driver writes the results.
#
# A lost actor loses the samples that it had in progress; they are solved again, the last time each by itself, so that a
# sample that kills actors takes no other with it. Then it is a result with an error.

TRIES = 3


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

    async def solve(self, system: Contender, sample: ItemInput) -> SolvedItem:
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
        return solved or SolvedItem(failed_result(system, sample, lost))

    def close(self) -> None:
        for member in self._members:
            self._kill(member)

    async def _solve_with(self, member: _Member, system: Contender, sample: ItemInput) -> SolvedItem | None:
        """Solve a sample in one actor; None if the actor was lost. Raises the KinodexError that ends its work."""
        import ray

        member.load += 1
        try:
            solved: SolvedItem = await member.actor.solve.remote(system, sample)
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


# Samples solved by several processes of this machine: what an agent does beside its models keeps one core busy.
#
# Each process solves many samples side by side, as `open_solver` does. The processes write nothing: the one that
# started
# them writes the results. `ProcessPoolExecutor` gives none of this: a process of its pool takes one task at a time, and
# one that dies breaks the pool, with the tasks of all others.
#
# A process that died, or whose agent never gives it back, loses the samples that it had in progress; they are solved
# again, the last time each by itself, so that a sample that ends processes takes no other with it. Then it is a result
# with an error. What crosses between processes is bytes and texts, so that an error of an agent's own that cannot be
# read here is still an error, with its words.

Job = tuple[int, Contender, ItemInput] | tuple[int, None, None]
"""A number, and a sample to solve; without one only a sign of life is asked for."""
GRACE_S = 5.0
"""Time that a process may take to end when its pipe is closed: a user's own agent may block its loop for ever."""
HANG_S = 300.0
"""Time without a sign of life after which a process is ended: an agent computes, or waits, without giving it back."""
OPENED = 0
"""The number of the message that a process has opened the library and the models; samples have higher numbers."""


@dataclass(slots=True, eq=False)
class _ProcessMember:
    """A process, and by number the replies that are pending."""

    process: BaseProcess
    pipe: Connection
    pending: dict[int, asyncio.Future[Any]]
    hang_s: float
    numbers: Iterator[int] = field(default_factory=lambda: count_from(OPENED + 1))
    ended: bool = False
    hung: bool = False
    joining: asyncio.Lock = field(default_factory=asyncio.Lock)

    def request(self, system: Contender | None = None, sample: ItemInput | None = None) -> asyncio.Future[Any]:
        """Send a sample, or ask for a sign of life; the future is None if the process ends before it replies."""
        number = next(self.numbers)
        future = self.pending[number] = asyncio.get_running_loop().create_future()
        if self.ended:
            future.set_result(None)
        with suppress(OSError):  # it ended just now, and `receive` will find out
            self.pipe.send((number, system, sample))
        return future

    async def watch(self) -> None:
        """Kill the process if it gives no sign of life for too long."""
        await asyncio.wait([self.pending[OPENED]])
        while not self.ended:
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
            self.ended = True
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

    At the end, samples in progress are given up; a process that does not end within `grace_s` is killed. The function
    raises what ends a run. A sample that ended `TRIES` processes, or gave none back for `hang_s`, is a result with an
    error.
    """
    context = replace(context, choice=replace(context.choice, share=count))
    pool = _Pool(context, hang_s)
    try:
        members = [pool.start() for _ in range(count)]
        await asyncio.gather(*(member.pending[OPENED] for member in members))
        pool.members = members
        yield pool.solve
    finally:
        for watching in pool.watching:
            watching.cancel()
        await asyncio.gather(*(member.end(grace_s) for member in pool.started))


class _Pool:
    """Processes that solve samples; one that ended is replaced."""

    def __init__(self, context: RunContext, hang_s: float) -> None:
        self.started: list[_ProcessMember] = []
        self.members: list[_ProcessMember] = []
        self.watching: list[asyncio.Task[None]] = []
        self._context, self._hang_s = context, hang_s
        self._lonely: _ProcessMember | None = None
        self._alone = asyncio.Lock()

    def start(self) -> _ProcessMember:
        """Start a process and watch it."""
        member = _start(self._context, self._hang_s)
        self.started.append(member)
        self.watching.append(asyncio.ensure_future(member.watch()))
        return member

    async def solve(self, system: Contender, sample: ItemInput) -> SolvedItem:
        """Solve a sample in the process that has the fewest, and again in others if that ends."""
        for _ in range(TRIES - 1):
            self.members = [self.start() if each.ended else each for each in self.members]
            member = min(self.members, key=lambda each: len(each.pending))
            solved: SolvedItem | None = await member.request(system, sample)
            if solved is not None:
                return solved
            member.pending[OPENED].result()  # raises where a process cannot open the library any more
        async with self._alone:
            if self._lonely is None or self._lonely.ended:
                self._lonely = self.start()
            member = self._lonely
            solved = await member.request(system, sample)
        return solved or SolvedItem(failed_result(system, sample, await member.end_in_words()))


def _start(context: RunContext, hang_s: float) -> _ProcessMember:
    spawning = get_context("spawn")
    ours, theirs = spawning.Pipe()
    process = spawning.Process(target=_work, args=(context, theirs), daemon=True)
    with without_interrupts(), isolated_children():  # this process closes the pipe, which ends them
        process.start()
    theirs.close()
    loop = asyncio.get_running_loop()
    member = _ProcessMember(process, ours, {OPENED: loop.create_future()}, hang_s)
    loop.add_reader(ours.fileno(), member.receive)
    return member


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


# Optional stage on Ray: actors that each load the model once and take a few videos at a time.
#
# They write the rows themselves; the driver shows them to readers. What a lost actor wrote is deleted and its videos
# are
# retried by another one, each by itself, three times in all; then they are failures.

VIDEOS_A_BUNDLE = 4


@dataclass(frozen=True, slots=True)
class Bundle:
    """Videos for one actor, and the number of actors that were lost over them."""

    videos: tuple[VideoRow, ...]
    losses: int = 0


class AddWorker:
    """Worker that adds a stage to videos; runs as an actor."""

    def __init__(self, uri: str, stage: Stage, lease: LeaseKey) -> None:
        self._library = Library.open(uri)
        self._stage = stage
        self._lease = lease

    def add(self, videos: Sequence[VideoRow]) -> list[VideoOutcome]:
        return [outcome for some in add_in_process(self._library, self._stage, videos, self._lease) for outcome in some]


@contextmanager
def ray_executor(workers: int | None, address: str | None) -> Iterator[Executor]:
    """Connect to the cluster at `address`, or start one, for so many actors (None: one a GPU, else one a core)."""
    with connected(address):
        yield partial(add_on_ray, workers)


def add_on_ray(
    workers: int | None, library: Library, stage: Stage, videos: Sequence[VideoRow], lease: LeaseKey
) -> Generator[list[VideoOutcome], None, None]:
    """Add a stage as `add_in_process` does; raises the PipelineError or KinodexError that ends an actor's work."""
    import ray

    actors = workers or int(_gpus(stage) or total_resources().get("CPU", 1)) or 1
    waiting = deque(_bundles(videos, actors))
    if isinstance(stage, ConcurrentStage):
        stage = stage.share(min(actors, len(waiting)) or 1)
    idle = [_actor(library, stage, lease) for _ in range(min(actors, len(waiting)))]
    running: dict[Any, tuple[Any, Bundle]] = {}
    try:
        while waiting or running:
            while waiting and idle:
                actor, bundle = idle.pop(), waiting.popleft()
                running[actor.add.remote(bundle.videos)] = actor, bundle
            done, _ = ray.wait(list(running), num_returns=1)
            actor, bundle = running.pop(done[0])
            outcomes = _outcomes(done[0])
            if outcomes is None:
                ray.kill(actor)  # it may only be out of reach; so it certainly writes nothing more
                actor = _actor(library, stage, lease)
                waiting += _retries(library, stage, bundle)
                outcomes = _final_failures(bundle)
            idle.append(actor)
            yield outcomes
    finally:
        for actor in [*idle, *(actor for actor, _ in running.values())]:
            ray.kill(actor)


def _outcomes(reference: Any) -> list[VideoOutcome] | None:
    """Outcomes of an actor's videos; None if it was lost."""
    import ray

    try:
        outcomes: list[VideoOutcome] = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        reraise(error)
    except ray.exceptions.RayError:
        return None
    return outcomes


def _retries(library: Library, stage: Stage, bundle: Bundle) -> list[Bundle]:
    """Delete what a lost actor wrote and split its videos, so that one that kills actors stops no other."""
    complete = library.visible.models(stage.name)
    begun = [each.video_id for each in bundle.videos if stage.model not in complete.get(each.video_id, ())]
    library.additions.discard(stage.name, stage.model, *begun)  # what an earlier run completed stays
    if bundle.losses + 1 >= TRIES:
        return []
    return [Bundle((video,), bundle.losses + 1) for video in bundle.videos]


def _final_failures(bundle: Bundle) -> list[VideoOutcome]:
    if bundle.losses + 1 < TRIES:
        return []
    lost = f"{TRIES} workers were lost over it; look for their ends in Ray's logs (out of memory?), or lower --batch"
    return [VideoOutcome(video.video_id, video.uri, video.title, 0, lost, "WorkerLost") for video in bundle.videos]


def _bundles(videos: Sequence[VideoRow], workers: int) -> list[Bundle]:
    """Split videos into bundles small enough that every actor gets two, if there are so many videos."""
    size = max(1, min(VIDEOS_A_BUNDLE, len(videos) // (2 * workers)))
    return [Bundle(tuple(videos[first : first + size])) for first in range(0, len(videos), size)]


def _actor(library: Library, stage: Stage, lease: LeaseKey) -> Any:
    """Start an actor, with a GPU where the cluster has any and the model may use one."""
    options: dict[str, Any] = {"num_gpus": 1} if _gpus(stage) else {"num_cpus": 1}
    return actor_of(AddWorker).options(max_restarts=0, max_task_retries=0, **options).remote(library.uri, stage, lease)


def _gpus(stage: Stage) -> float:
    """GPUs of the cluster that the stage's model may use."""
    return 0.0 if stage.device == "cpu" else total_resources().get("GPU", 0.0)
