"""Additions whose rows a model writes of the parts of videos: captions, titles, extracts.

Such an addition yields rounds of requests and makes rows of their replies. Where these come from is no concern of it:
an endpoint, which is kept full with requests of several videos together, a local model, the Batch API, or a dry run.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Self, TypeVar

from kinodex.agent.checked import Outcome, ask_checked
from kinodex.agent.errors import ModelRejected
from kinodex.agent.protocol import Request
from kinodex.index.library import Library
from kinodex.index.rows import VideoRow
from kinodex.jobs.add.run import NO_COST, AddedRows, RowsOf
from kinodex.jobs.errors import CostReached
from kinodex.jobs.library import batched

if TYPE_CHECKING:
    from kinodex.agent.models.endpoint import Send
    from kinodex.agent.models.openai_model import OpenAIModel
    from kinodex.agent.models.roles import ResponseCache, Role

SEGMENTS_AT_ONCE, REQUESTS_AT_ONCE = 4, 32
BATCHES_AHEAD = 2
"""Batches of a video's parts that wait for the endpoint, so that the next is there when it ends the first."""
VIDEOS_AHEAD = 2
"""Long videos worked on together, so that the end of one is filled with another; more if they are short."""
NOT_STORED = ("name", "device", "batch", "again", "send", "asked_as", "stop_at_cost")
"""Settings that the rows do not depend on."""

T = TypeVar("T")


UNSENT: Outcome[Any] = Outcome(None)
"""Of a request that was not sent, since those before it had cost too much."""


class NotInBatch(ModelRejected):
    """A request that no job has answered yet."""


@dataclass(frozen=True, slots=True)
class Round:
    """So many requests about parts of a video that do not wait for each other; made some at a time: they hold pictures.

    `make` gets their numbers.
    """

    count: int
    make: Callable[[Sequence[int]], Sequence[Request[Any]]]


Rounds = Generator[Round, list[Outcome[Any]], AddedRows]
"""Rounds of one video, each of which is sent the outcomes of its requests; the rows at their end."""
Answer = Callable[[Round], list[Outcome[Any]]]
"""Answers the requests of a round, in order."""


def run_rounds(rounds: Rounds, answer: Answer) -> AddedRows:
    """Have the requests of a video answered; it failed if those of the first round that has any were all refused."""
    usage, any_reply, calls, invalid = NO_COST, False, 0, 0
    try:
        asked = next(rounds)
        while True:
            outcomes = answer(asked)
            usage = sum((each.usage for each in outcomes), usage)
            calls += sum(each.calls for each in outcomes)
            invalid += sum(each.invalid for each in outcomes)
            any_reply = any_reply or any(each.reply is not None for each in outcomes)
            refused = [each.refused for each in outcomes if each.refused is not None]
            if refused and not any_reply:
                rounds.close()
                return AddedRows((), 0, usage=usage, failed=refused[-1], calls=calls, invalid=invalid)
            asked = rounds.send(outcomes)
    except StopIteration as end:
        made: AddedRows = end.value
        return replace(made, usage=usage, calls=calls, invalid=invalid)


def reasons(outcomes: Iterable[Outcome[Any]]) -> str:
    """Return the end of a sentence about parts without a reply: what requests were refused for, or replies lacked."""
    unanswered = [outcome for outcome in outcomes if outcome.reply is None]
    refused = [outcome.refused for outcome in unanswered if outcome.refused is not None]
    complaints = [outcome.complaint for outcome in unanswered if outcome.complaint]
    said = f"; requests refused: {len(refused)}, the last because {refused[-1]}" if refused else ""
    return said + (f"; the last reply could not be used: {complaints[-1]}" if complaints else "")


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
    asked_as: Role | None = None
    """All settings of the endpoint's model, where they are known: the fields above are part of them."""
    stop_at_cost: float | None = None
    """No request begins once those before cost so much; the replies that came are kept for the next run."""
    name: str = ""

    def prepare(self, library: Library) -> None:
        """See `kinodex.jobs.add.run.Addition`."""
        raise NotImplementedError

    def write(self, library: Library, rows: Mapping[str, Any]) -> None:
        """See `kinodex.jobs.add.run.Addition`."""
        raise NotImplementedError

    def rounds(self, library: Library, video: VideoRow) -> Rounds:
        """Ask about the parts of one video that lack rows, and make these."""
        raise NotImplementedError

    def replies_here(self, requests: Sequence[Request[Any]]) -> list[Outcome[Any]]:
        """Have the local model reply to some requests."""
        raise NotImplementedError

    def parts_of(self, video: VideoRow) -> int:
        """About how many requests a video makes."""
        return video.segments

    @property
    def settings(self) -> Mapping[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name not in NOT_STORED}

    @property
    def role(self) -> Role:
        """Settings of the endpoint's model; prices are of a million tokens."""
        from kinodex.agent.models.roles import read_roles

        if self.asked_as is not None:
            return self.asked_as
        price = {"input": self.input_price, "output": self.output_price}
        role = {"model": self.served, "base_url": self.base_url, "at_once": self.batch, "price": price}
        return read_roles({"default": role})["default"]

    @property
    def served(self) -> str:
        """The model's name at the endpoint."""
        return self.model

    def check_key(self) -> None:
        """Raise the error of a key that the endpoint needs and the environment lacks."""
        from kinodex.agent.models.roles import api_key

        api_key(self.role)

    def rows_of(self, library: Library, video: VideoRow) -> AddedRows:
        if self.base_url is None:
            return run_rounds(self.rounds(library, video), self._answer_here)
        with open_model_thread(self.role, self.send) as thread:
            return self.rows_at(thread, library, video)

    def rows_at(self, thread: ModelThread, library: Library, video: VideoRow) -> AddedRows:
        """Make the rows of one video by the endpoint."""
        return run_rounds(self.rounds(library, video), partial(answer_at, thread))

    def _answer_here(self, asked: Round) -> list[Outcome[Any]]:
        some = batched(range(asked.count), self.batch)
        return [each for numbers in some for each in self.replies_here(asked.make(numbers))]

    def each(self, work: Callable[[RowsOf, VideoRow], T], videos: Iterable[VideoRow]) -> Generator[T, None, None]:
        """Work on videos one by one with a local model, on several at once at an endpoint."""
        if self.base_url is None:
            yield from (work(self.rows_of, video) for video in videos)
            return
        # The model's thread ends first, so that a failure does not wait for requests in flight.
        with (
            ThreadPoolExecutor(videos_at_once(self.batch)) as pool,
            open_model_thread(self.role, self.send, self.stop_at_cost) as thread,
        ):
            yield from map_in_order(
                pool, partial(work, partial(self.rows_at, thread)), videos, self.batch, self.parts_of
            )

    def share(self, processes: int) -> Self:
        """Divide the requests at once among processes; a local model works on as much as before in each."""
        return self if self.base_url is None else replace(self, batch=max(1, self.batch // processes))


def default_batch(base_url: str | None) -> int:
    return SEGMENTS_AT_ONCE if base_url is None else REQUESTS_AT_ONCE


def videos_at_once(at_once: int) -> int:
    """The largest number of videos in flight together: if each has one segment."""
    return VIDEOS_AHEAD * at_once


def map_in_order(
    pool: Executor,
    work: Callable[[VideoRow], T],
    videos: Iterable[VideoRow],
    at_once: int,
    parts_of: Callable[[VideoRow], int],
) -> Generator[T, None, None]:
    """Apply `work` to each video and yield the results in order, with enough videos at once to fill an endpoint."""
    in_flight: deque[tuple[Future[T], int]] = deque()
    for video in videos:
        size = min(max(parts_of(video), 1), BATCHES_AHEAD * at_once)
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
    stop_at_cost: float | None = None
    cost: float = 0.0
    """Of the requests that have ended."""

    @property
    def is_spent(self) -> bool:
        return self.stop_at_cost is not None and self.cost >= self.stop_at_cost

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


def answer_at(thread: ModelThread, asked: Round) -> list[Outcome[Any]]:
    """Answer a round by an endpoint, until it has rejected a request and replied to none.

    Raises CostReached if one was not sent for its cost, once those in flight have ended.
    """
    outcomes: list[Outcome[Any]] = []
    waiting: deque[Future[list[Outcome[Any]]]] = deque()
    try:
        for numbers in batched(range(asked.count), thread.model.role.at_once):
            waiting.append(thread.submit(_ask_all(thread, asked.make(numbers))))
            while len(waiting) == BATCHES_AHEAD or (waiting and _is_refused(outcomes)):
                outcomes += waiting.popleft().result()
            if _is_refused(outcomes) or thread.is_spent:
                break
        while waiting:
            outcomes += waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()
    if thread.is_spent and (len(outcomes) < asked.count or UNSENT in outcomes):
        raise CostReached(
            f"the replies cost {thread.cost:.4g} so far, and --stop-at-cost is {thread.stop_at_cost:g}; run the same "
            "command again to go on: what came is kept"
        )
    return outcomes + [Outcome(None)] * (asked.count - len(outcomes))


def _is_refused(outcomes: Iterable[Outcome[Any]]) -> bool:
    refused = (each.refused is not None and not isinstance(each.refused, NotInBatch) for each in outcomes)
    return any(refused) and all(each.reply is None for each in outcomes)


async def _ask_all(thread: ModelThread, requests: Sequence[Request[Any]]) -> list[Outcome[Any]]:
    """Ask all of some requests at once, but for those that would begin when too much is spent."""
    from kinodex.agent.limits import gather_all

    return await gather_all([_ask_within_cost(thread, request) for request in requests])


async def _ask_within_cost(thread: ModelThread, request: Request[Any]) -> Outcome[Any]:
    if thread.is_spent:
        return UNSENT
    outcome = await ask_checked(thread.model, request)
    thread.cost += outcome.usage.cost
    return outcome


@contextmanager
def open_model_thread(
    role: Role, send: Send | None = None, stop_at_cost: float | None = None, *, keep: bool = True
) -> Iterator[ModelThread]:
    """Open the model of a role in a thread of its own; requests in flight at the end are cancelled.

    Unless `keep`, the cache of replies is read and not added to.
    """
    ready: Future[ModelThread] = Future()
    with ThreadPoolExecutor(max_workers=1) as pool:
        ended = pool.submit(asyncio.run, _serve(role, ready, send, keep))
        both: list[Future[Any]] = [ready, ended]
        wait(both, return_when=FIRST_COMPLETED)
        if not ready.done():
            ended.result()  # raises the error of opening it
        thread = ready.result()
        thread.stop_at_cost = stop_at_cost
        try:
            yield thread
        finally:
            thread.close()


async def _serve(role: Role, ready: Future[ModelThread], send: Send | None, keep: bool) -> None:
    from kinodex.agent.models.openai_model import OpenAIModel

    closing = asyncio.Event()
    with _replies(keep) as cache:
        async with OpenAIModel(role, cache=cache, send=send) as model:
            ready.set_result(ModelThread(model, asyncio.get_running_loop(), closing))
            await closing.wait()
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def _replies(keep: bool) -> ResponseCache:
    """The cache of replies; unless `keep`, one into which nothing is put: what is new there counts as paid."""
    from kinodex.agent.models.roles import ResponseCache
    from kinodex.jobs.models import cache_file

    class ReadCache(ResponseCache):
        def put(self, key: str, reply: Mapping[str, object], *, instead: Mapping[str, object] | None = None) -> None:
            """Store nothing."""

    return ResponseCache(cache_file()) if keep else ReadCache(cache_file())
