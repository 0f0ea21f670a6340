"""Work at an OpenAI-compatible endpoint, which is kept full with requests of several videos together."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from kinodex.agent.errors import AllRejected, ModelRejected
from kinodex.agent.protocol import Reply, Request, Usage
from kinodex.index.library import Library
from kinodex.index.rows import VideoRow
from kinodex.jobs.add.run import AddedRows, RowsOf

if TYPE_CHECKING:
    from kinodex.agent.models.endpoint import Send
    from kinodex.agent.models.openai_model import OpenAIModel
    from kinodex.agent.models.roles import Role

ATTEMPTS = 2
SEGMENTS_AT_ONCE, REQUESTS_AT_ONCE = 4, 32
BATCHES_AHEAD = 2
"""Batches of a video's parts that wait for the endpoint, so that the next is there when it ends the first."""
VIDEOS_AHEAD = 2
"""Long videos worked on together, so that the end of one is filled with another; more if they are short."""
NOT_STORED = ("name", "device", "batch", "again", "send")
"""Settings that the rows do not depend on."""

T = TypeVar("T")
R = TypeVar("R", bound=Reply)


@dataclass(frozen=True, slots=True)
class EndpointAddition:
    """Addition by a local model, or with `base_url` by one that an OpenAI-compatible endpoint serves."""

    model: str
    base_url: str | None = None
    batch: int = SEGMENTS_AT_ONCE
    """Parts that a local model is given at once, or requests to an endpoint at once, of several videos together."""
    max_new_tokens: int = 96
    device: str = "auto"
    input_price: float = 0.0
    output_price: float = 0.0
    send: Send | None = None
    """The way of requests to the endpoint, if it is not HTTP."""

    def rows_here(self, library: Library, video: VideoRow) -> AddedRows:
        """Make the rows of one video by the local model."""
        raise NotImplementedError

    def rows_at(self, thread: ModelThread, library: Library, video: VideoRow) -> AddedRows:
        """Make the rows of one video by the endpoint."""
        raise NotImplementedError

    @property
    def settings(self) -> Mapping[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name not in NOT_STORED}

    @property
    def role(self) -> Role:
        """Settings of the endpoint's model; prices are of a million tokens."""
        from kinodex.agent.models.roles import read_roles

        price = {"input": self.input_price, "output": self.output_price}
        role = {"model": self.model, "base_url": self.base_url, "at_once": self.batch, "price": price}
        return read_roles({"default": role})["default"]

    def check_key(self) -> None:
        """Raise the error of a key that the endpoint needs and the environment lacks."""
        from kinodex.agent.models.roles import api_key

        api_key(self.role)

    def rows_of(self, library: Library, video: VideoRow) -> AddedRows:
        if self.base_url is None:
            return self.rows_here(library, video)
        with open_model_thread(self.role, self.send) as thread:
            return self.rows_at(thread, library, video)

    def each(self, work: Callable[[RowsOf, VideoRow], T], videos: Iterable[VideoRow]) -> Generator[T, None, None]:
        """Work on videos one by one with a local model, on several at once at an endpoint."""
        if self.base_url is None:
            yield from (work(self.rows_of, video) for video in videos)
            return
        # The model's thread ends first, so that a failure does not wait for requests in flight.
        with ThreadPoolExecutor(videos_at_once(self.batch)) as pool, open_model_thread(self.role, self.send) as thread:
            yield from map_in_order(pool, partial(work, partial(self.rows_at, thread)), videos, self.batch)

    def share(self, processes: int) -> Self:
        """Divide the requests at once among processes; a local model works on as much as before in each."""
        return self if self.base_url is None else replace(self, batch=max(1, self.batch // processes))


def default_batch(base_url: str | None) -> int:
    return SEGMENTS_AT_ONCE if base_url is None else REQUESTS_AT_ONCE


def videos_at_once(at_once: int) -> int:
    """The largest number of videos in flight together: if each has one segment."""
    return VIDEOS_AHEAD * at_once


def map_in_order(
    pool: Executor, work: Callable[[VideoRow], T], videos: Iterable[VideoRow], at_once: int
) -> Generator[T, None, None]:
    """Apply `work` to each video and yield the results in order, with enough videos at once to fill an endpoint."""
    in_flight: deque[tuple[Future[T], int]] = deque()
    for video in videos:
        size = min(max(video.segments, 1), BATCHES_AHEAD * at_once)
        room = VIDEOS_AHEAD * BATCHES_AHEAD * at_once - size
        while len(in_flight) == videos_at_once(at_once) or sum(each for _, each in in_flight) > room:
            yield in_flight.popleft()[0].result()
        in_flight.append((pool.submit(work, video), size))
    while in_flight:
        yield in_flight.popleft()[0].result()


@dataclass(slots=True)
class ModelThread:
    """A model that any thread may use: its client lives in an event loop of its own."""

    model: OpenAIModel
    loop: asyncio.AbstractEventLoop
    closing: asyncio.Event
    lock: Lock = field(default_factory=Lock)
    is_closed: bool = False

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        with self.lock:  # work that comes after the end would be waited for, and nothing would run it
            if not self.is_closed:
                return asyncio.run_coroutine_threadsafe(work, self.loop)
        work.close()
        raise CancelledError

    def close(self) -> None:
        with self.lock:
            self.is_closed = True
        self.loop.call_soon_threadsafe(self.closing.set)


@contextmanager
def open_model_thread(role: Role, send: Send | None = None) -> Iterator[ModelThread]:
    """Open the model of a role in a thread of its own; requests in flight at the end are cancelled."""
    ready: Future[ModelThread] = Future()
    with ThreadPoolExecutor(max_workers=1) as pool:
        ended = pool.submit(asyncio.run, _serve(role, ready, send))
        both: list[Future[Any]] = [ready, ended]
        wait(both, return_when=FIRST_COMPLETED)
        if not ready.done():
            ended.result()  # raises the error of opening it
        thread = ready.result()
        try:
            yield thread
        finally:
            thread.close()


async def _serve(role: Role, ready: Future[ModelThread], send: Send | None) -> None:
    from kinodex.agent.models.openai_model import OpenAIModel
    from kinodex.agent.models.roles import ResponseCache
    from kinodex.jobs.models import cache_file

    closing = asyncio.Event()
    with ResponseCache(cache_file()) as cache:
        async with OpenAIModel(role, cache=cache, send=send) as model:
            ready.set_result(ModelThread(model, asyncio.get_running_loop(), closing))
            await closing.wait()
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


@dataclass(frozen=True, slots=True)
class Outcome(Generic[R]):
    """Outcome of asking: the reply, None if none could be used; `refused` is the error if the request was rejected."""

    reply: R | None
    usage: Usage
    refused: ModelRejected | None = None


async def ask_again(model: OpenAIModel, request: Request[R]) -> Outcome[R]:
    """Ask in at most two requests, not counting invalid replies in the cache.

    A rejected request is an outcome: it may be for what it holds, and others may succeed. Raises `AllRejected`.
    """
    usage, attempts = Usage(), 0
    while attempts < ATTEMPTS:
        try:
            exchange = await model.ask(request)
        except AllRejected:
            raise
        except ModelRejected as error:
            return Outcome(None, usage, error)
        usage += exchange.usage
        attempts += not exchange.cached
        if exchange.reply is not None:
            return Outcome(exchange.reply, usage)
        complaint = exchange.invalid or ""
        request = replace(request, attempt=request.attempt + 1, complaint=complaint, bad_reply=exchange.raw)
    return Outcome(None, usage)
