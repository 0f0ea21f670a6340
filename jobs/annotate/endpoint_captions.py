"""Captions by a model behind an OpenAI-compatible endpoint, kept full of requests: those of several videos together."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from agent.core.protocol import ShownFrame, Usage
from agent.errors import AllRejected, ModelRejected
from index.library import Library
from index.rows import SegmentRow, StoredFrame, VideoRow
from jobs.stored_frames import frames_between

if TYPE_CHECKING:
    from agent.models.openai_compatible import OpenAIModel
    from agent.models.role_config import Role

ATTEMPTS = 2
PORTIONS_AHEAD = 2
"""Portions of a video's segments that wait for the endpoint, so that it has the next ones when it ends the first."""
VIDEOS_AHEAD = 2
"""Long videos worked on together, so that the end of one is filled with another; of short ones there are more."""

T = TypeVar("T")


class Text(NamedTuple):
    """What a model says of a segment; `confidence` is 0 to 1."""

    caption: str
    confidence: float


class Said(NamedTuple):
    """What an endpoint says of a segment and what that cost; without a text, `refused` says why if it would not."""

    text: Text | None
    usage: Usage
    refused: ModelRejected | None = None


@dataclass(slots=True)
class Told:
    """A text for each segment, None where none could be had, what they cost, and refusals of single requests."""

    texts: list[Text | None] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    refused: list[ModelRejected] = field(default_factory=list)


@dataclass(slots=True)
class Asker:
    """A model that any thread may ask: its client lives in an event loop of its own."""

    model: OpenAIModel
    loop: asyncio.AbstractEventLoop
    at_end: asyncio.Event
    lock: Lock = field(default_factory=Lock)
    is_ended: bool = False

    def begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        with self.lock:  # what comes after the end would be waited for, and nothing runs it
            if not self.is_ended:
                return asyncio.run_coroutine_threadsafe(work, self.loop)
        work.close()
        raise CancelledError

    def end(self) -> None:
        with self.lock:
            self.is_ended = True
        self.loop.call_soon_threadsafe(self.at_end.set)


@contextmanager
def asker_of(role: Role) -> Iterator[Asker]:
    """The asker of a role; what it is asked when the context ends is cancelled."""
    ready: Future[Asker] = Future()
    with ThreadPoolExecutor(max_workers=1) as thread:
        served = thread.submit(asyncio.run, _serve(role, ready))
        both: list[Future[Any]] = [ready, served]
        wait(both, return_when=FIRST_COMPLETED)
        if not ready.done():
            served.result()  # raises why there is none
        asker = ready.result()
        try:
            yield asker
        finally:
            asker.end()


async def _serve(role: Role, ready: Future[Asker]) -> None:
    from agent.models.openai_compatible import OpenAIModel
    from agent.models.response_cache import ResponseCache
    from jobs.model_choice import cache_file

    at_end = asyncio.Event()
    with ResponseCache(cache_file()) as cache:
        async with OpenAIModel(role, cache=cache) as model:
            ready.set_result(Asker(model, asyncio.get_running_loop(), at_end))
            await at_end.wait()
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def in_order(
    pool: Executor, work: Callable[[VideoRow], T], videos: Iterable[VideoRow], at_once: int
) -> Generator[T, None, None]:
    """What is made of each video, in their order, of so many together that their segments fill an endpoint.

    What fails is raised where it stands.
    """
    under_way: deque[tuple[Future[T], int]] = deque()
    for video in videos:
        size = min(max(video.segments, 1), PORTIONS_AHEAD * at_once)
        total_resources = VIDEOS_AHEAD * PORTIONS_AHEAD * at_once - size
        while len(under_way) == videos_ahead(at_once) or sum(each for _, each in under_way) > total_resources:
            yield under_way.popleft()[0].result()
        under_way.append((pool.submit(work, video), size))
    while under_way:
        yield under_way.popleft()[0].result()


def videos_ahead(at_once: int) -> int:
    """The most videos under way together: those of a segment each."""
    return VIDEOS_AHEAD * at_once


def ask(asker: Asker, library: Library, video: VideoRow, segments: Sequence[SegmentRow], frames_a_segment: int) -> Told:
    """What an endpoint says of a video's segments.

    Raises `ModelRejected` once it has refused a portion before it described anything.
    """
    told = Told()
    waiting: deque[Future[list[Said]]] = deque()
    size = asker.model.role.at_once
    try:
        for first in range(0, len(segments), size):
            batch = segments[first : first + size]
            shown = frames_between(library, video, [(each.start_s, each.end_s) for each in batch], frames_a_segment)
            waiting.append(asker.begin(_describe_all(asker.model, batch, shown)))
            if len(waiting) == PORTIONS_AHEAD:
                _take(told, waiting.popleft().result())
        while waiting:
            _take(told, waiting.popleft().result())
    finally:
        for future in waiting:
            future.cancel()
    return told


def _take(told: Told, portion: Sequence[Said]) -> None:
    for said in portion:
        told.texts.append(said.text)
        told.usage += said.usage
        told.refused += filter(None, [said.refused])
    if told.refused and not any(told.texts):
        raise told.refused[-1]


async def _describe_all(
    model: OpenAIModel, segments: Sequence[SegmentRow], shown: Sequence[Sequence[StoredFrame]]
) -> list[Said]:
    from agent.session import gather_all

    pairs = zip(segments, shown, strict=True)
    return await gather_all([_describe(model, segment, frames) for segment, frames in pairs])


async def _describe(model: OpenAIModel, segment: SegmentRow, frames: Iterable[StoredFrame]) -> Said:
    """The description of one segment, asked for twice at most, besides what the cache holds of unusable replies."""
    from agent.core.question import Segment
    from agent.requests.describe import DescribeSegment

    part = Segment(segment.segment_no, segment.video_id, segment.start_s, segment.end_s)
    request = DescribeSegment(segment=part, frames=tuple(ShownFrame(**asdict(frame)) for frame in frames))
    usage, asked = Usage(), 0
    while asked < ATTEMPTS:
        try:
            exchange = await model.ask(request)
        except AllRejected:
            raise
        except ModelRejected as error:  # of what these frames show: the others may do
            return Said(None, usage, error)
        usage += exchange.usage
        asked += not exchange.cached
        reply = exchange.reply
        if reply is not None and (reply.caption.strip() or not exchange.cached):
            return Said(Text(reply.caption, reply.confidence / 100), usage)
        wrong = exchange.invalid or "the caption is empty"
        request = replace(request, attempt=request.attempt + 1, complaint=wrong, bad_reply=exchange.raw)
    return Said(None, usage)
