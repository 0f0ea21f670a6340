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
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from kinodex.agent.errors import AllRejected, ModelRejected
from kinodex.agent.protocol import Reply, Request, Usage
from kinodex.index.library import Library
from kinodex.index.rows import VideoRow
from kinodex.jobs.add.run import RowsOf, Stage, StageRows

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

T = TypeVar("T")
R = TypeVar("R", bound=Reply)


class EndpointStage(Stage, Protocol):
    """Stage whose model is local, or with `base_url` one that an endpoint serves; a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def base_url(self) -> str | None: ...
    @property
    def batch(self) -> int:
        """Parts of videos that a local model is given at once, or requests to an endpoint at once."""

    @property
    def input_price(self) -> float: ...
    @property
    def output_price(self) -> float: ...
    @property
    def send(self) -> Send | None:
        """The way of requests to the endpoint, if it is not HTTP."""


S = TypeVar("S", bound=EndpointStage)
RowsAt = Callable[[S, "ModelThread", Library, VideoRow], StageRows]
"""Makes the rows of one video by the endpoint of a stage."""


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
    """Open the model of a role in a thread of its own; requests in flight at the end are cancelled.

    `send` takes the place of HTTP for replies that the cache does not hold.
    """
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


def map_in_order(
    pool: Executor, work: Callable[[VideoRow], T], videos: Iterable[VideoRow], at_once: int
) -> Generator[T, None, None]:
    """Apply `work` to each video and yield the results in order, with enough videos at once to fill an endpoint.

    An error is raised at its place in the order.
    """
    in_flight: deque[tuple[Future[T], int]] = deque()
    for video in videos:
        size = min(max(video.segments, 1), BATCHES_AHEAD * at_once)
        total_resources = VIDEOS_AHEAD * BATCHES_AHEAD * at_once - size
        while len(in_flight) == videos_at_once(at_once) or sum(each for _, each in in_flight) > total_resources:
            yield in_flight.popleft()[0].result()
        in_flight.append((pool.submit(work, video), size))
    while in_flight:
        yield in_flight.popleft()[0].result()


def videos_at_once(at_once: int) -> int:
    """The largest number of videos in flight together: if each has one segment."""
    return VIDEOS_AHEAD * at_once


def default_batch(base_url: str | None) -> int:
    """Return the default of `batch`."""
    return SEGMENTS_AT_ONCE if base_url is None else REQUESTS_AT_ONCE


def stored_settings(stage: EndpointStage) -> Mapping[str, Any]:
    """Collect the settings of a stage that its rows depend on."""
    return {each.name: getattr(stage, each.name) for each in fields(stage) if each.name not in NOT_STORED}


def role_of(stage: EndpointStage) -> Role:
    """Make the settings of the endpoint's model; prices are of a million tokens."""
    from kinodex.agent.models.roles import read_roles

    price = {"input": stage.input_price, "output": stage.output_price}
    role = {"model": stage.model, "base_url": stage.base_url, "at_once": stage.batch, "price": price}
    return read_roles({"default": role})["default"]


def check_key(stage: EndpointStage) -> None:
    """Raise the error of a key that the endpoint needs and the environment lacks."""
    from kinodex.agent.models.roles import api_key

    api_key(role_of(stage))


def rows_at(stage: S, rows_of: RowsAt[S], library: Library, video: VideoRow) -> StageRows:
    """Make the rows of one video alone by the endpoint."""
    with open_model_thread(role_of(stage), stage.send) as thread:
        return rows_of(stage, thread, library, video)


def each_video(
    stage: S, rows_of: RowsAt[S], work: Callable[[RowsOf, VideoRow], T], videos: Iterable[VideoRow]
) -> Generator[T, None, None]:
    """Work on videos one by one with a local model, on several at once at an endpoint; see `ConcurrentStage.each`."""
    if stage.base_url is None:
        yield from (work(stage.rows_of, video) for video in videos)
        return
    # The model's thread ends first, so that a failure does not wait for requests in flight.
    pool = ThreadPoolExecutor(videos_at_once(stage.batch))
    with pool, open_model_thread(role_of(stage), stage.send) as thread:
        yield from map_in_order(pool, partial(work, partial(rows_of, stage, thread)), videos, stage.batch)


def shared_batch(stage: EndpointStage, processes: int) -> int:
    """Divide the requests at once among processes; a local model works on as much as before in each."""
    return stage.batch if stage.base_url is None else max(1, stage.batch // processes)


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
