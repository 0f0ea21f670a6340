"""Captions by an OpenAI-compatible endpoint, which is kept full with requests of several videos together."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from agent.core.protocol import ShownFrame, Usage
from agent.errors import AllRejected, ModelRejected
from index.library import Library
from index.rows import SegmentRow, StoredFrame, VideoRow
from jobs.annotate.stage import RowsOf, StageRows
from jobs.stored_frames import frames_between

if TYPE_CHECKING:
    from agent.models.endpoint import Send
    from agent.models.openai_compatible import OpenAIModel
    from agent.models.role_config import Role

ATTEMPTS = 2
BATCHES_AHEAD = 2
"""Batches of a video's segments that wait for the endpoint, so that the next is there when it ends the first."""
VIDEOS_AHEAD = 2
"""Long videos worked on together, so that the end of one is filled with another; more if they are short."""

T = TypeVar("T")


class Text(NamedTuple):
    """Description of a segment by a model; `confidence` is 0 to 1."""

    caption: str
    confidence: float


class CaptionReply(NamedTuple):
    """Reply of an endpoint for one segment, and its usage; `refused` is the error if it rejected the request."""

    text: Text | None
    usage: Usage
    refused: ModelRejected | None = None


@dataclass(slots=True)
class CaptionBatch:
    """A text for each segment, None where there is none; their usage; requests that the endpoint rejected."""

    texts: list[Text | None] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    refused: list[ModelRejected] = field(default_factory=list)


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
    from agent.models.openai_compatible import OpenAIModel
    from agent.models.response_cache import ResponseCache
    from jobs.model_choice import cache_file

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


def describe_segments(
    thread: ModelThread, library: Library, video: VideoRow, segments: Sequence[SegmentRow], frames_a_segment: int
) -> CaptionBatch:
    """Describe a video's segments with an endpoint.

    Raises `ModelRejected` once it has rejected a request before it described anything.
    """
    captions = CaptionBatch()
    waiting: deque[Future[list[CaptionReply]]] = deque()
    size = thread.model.role.at_once
    try:
        for first in range(0, len(segments), size):
            batch = segments[first : first + size]
            shown = frames_between(library, video, [(each.start_s, each.end_s) for each in batch], frames_a_segment)
            waiting.append(thread.submit(describe_all(thread.model, batch, shown)))
            if len(waiting) == BATCHES_AHEAD:
                _collect(captions, waiting.popleft().result())
        while waiting:
            _collect(captions, waiting.popleft().result())
    finally:
        for future in waiting:
            future.cancel()
    return captions


def _collect(captions: CaptionBatch, replies: Sequence[CaptionReply]) -> None:
    for reply in replies:
        captions.texts.append(reply.text)
        captions.usage += reply.usage
        captions.refused += filter(None, [reply.refused])
    if captions.refused and not any(captions.texts):
        raise captions.refused[-1]


async def describe_all(
    model: OpenAIModel, segments: Sequence[SegmentRow], shown: Sequence[Sequence[StoredFrame]]
) -> list[CaptionReply]:
    from agent.core.side_by_side import gather_all

    pairs = zip(segments, shown, strict=True)
    return await gather_all([_describe(model, segment, frames) for segment, frames in pairs])


async def _describe(model: OpenAIModel, segment: SegmentRow, frames: Iterable[StoredFrame]) -> CaptionReply:
    """Describe one segment in at most two requests, not counting unusable replies in the cache."""
    from agent.core.question import Segment
    from agent.requests.describe import DescribeSegment

    part = Segment(segment.segment_no, segment.video_id, segment.start_s, segment.end_s)
    request = DescribeSegment(segment=part, frames=tuple(ShownFrame(**asdict(frame)) for frame in frames))
    usage, attempts = Usage(), 0
    while attempts < ATTEMPTS:
        try:
            exchange = await model.ask(request)
        except AllRejected:
            raise
        except ModelRejected as error:  # for what these frames show: other segments may succeed
            return CaptionReply(None, usage, error)
        usage += exchange.usage
        attempts += not exchange.cached
        reply = exchange.reply
        if reply is not None and (reply.caption.strip() or not exchange.cached):
            return CaptionReply(Text(reply.caption, reply.confidence / 100), usage)
        complaint = exchange.invalid or "the caption is empty"
        request = replace(request, attempt=request.attempt + 1, complaint=complaint, bad_reply=exchange.raw)
    return CaptionReply(None, usage)


def endpoint_role(model: str, base_url: str | None, at_once: int, input_price: float, output_price: float) -> Role:
    """Make the settings of an endpoint's model, asked for so much at once; prices are of a million tokens."""
    from agent.models.role_config import read_roles

    price = {"input": input_price, "output": output_price}
    role = {"model": model, "base_url": base_url, "at_once": at_once, "price": price}
    return read_roles({"default": role})["default"]


def each_by_endpoint(
    work: Callable[[RowsOf, VideoRow], T],
    rows_of: Callable[[ModelThread, Library, VideoRow], StageRows],
    role: Role,
    send: Send | None,
    at_once: int,
    videos: Iterable[VideoRow],
) -> Generator[T, None, None]:
    """Work on several videos at once, with so many requests to one model; see jobs.annotate.stage.ConcurrentStage."""
    # The model's thread ends first, so that a failure does not wait for requests in flight.
    with ThreadPoolExecutor(videos_at_once(at_once)) as pool, open_model_thread(role, send) as thread:
        yield from map_in_order(pool, partial(work, partial(rows_of, thread)), videos, at_once)
