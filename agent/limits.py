"""Costs of an answer and their limits: a clock of its work, bill and budget, a signal to stop, calls side by side."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, Generic, TypeVar

from kinodex.agent.budget import Budget
from kinodex.agent.protocol import Note, ShownFrame, Usage

# Seconds of one question's own work: what it computes, and its calls to models while they are served.
#
# Many questions share an event loop, the slots of an endpoint and stored replies. While a question waits for another
# one (`waiting`), or the loop works for others, its clock stands still, so that its seconds do not depend on how many
# are asked at once. What a server does with several requests is the server's: it cannot be distinguished from work.

T = TypeVar("T")
LOOK_S = 0.01
"""The least time between two looks at a clock that may stand still."""


class WorkClock:
    """A clock that runs while at least one part of the work is done; any thread may start and stop parts."""

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self._now = now
        self._lock = threading.RLock()
        self._parts = 0
        self._since = 0.0
        self._worked_s = 0.0
        self._stopped_at = now()

    @property
    def idle_s(self) -> float:
        """Seconds since the last part of the work ended; 0 while one is done."""
        with self._lock:
            return 0.0 if self._parts else self._now() - self._stopped_at

    @property
    def seconds(self) -> float:
        with self._lock:
            return self._worked_s + (self._now() - self._since if self._parts else 0.0)

    @contextmanager
    def working(self) -> Iterator[None]:
        self._start()
        try:
            yield
        finally:
            self._stop()

    @contextmanager
    def serving(self) -> Iterator[Service]:
        """Count the time of a call of a model, except where it is `waiting`."""
        service = Service(self)
        before = _service.set(service)
        self._start()
        try:
            yield service
        finally:
            _service.reset(before)
            service.end()

    async def count(self, call: Awaitable[T]) -> T:
        """Await a call, and count the time that it computes; so do `counted` calls in tasks that it starts."""
        before = _clock.set(self)
        try:
            return await _Steps(self, call)
        finally:
            _clock.reset(before)

    def _start(self) -> None:
        with self._lock:
            self._since = self._since if self._parts else self._now()
            self._parts += 1

    def _stop(self) -> None:
        with self._lock:
            self._parts -= 1
            if not self._parts:
                self._stopped_at = self._now()
                self._worked_s += self._stopped_at - self._since


class Service:
    """One call of a model; after its end nothing changes the clock, though its request may still be given up."""

    def __init__(self, clock: WorkClock) -> None:
        self.clock = clock
        self.waited_s = 0.0
        self._waits = 0
        self._since = 0.0
        self._ended = False

    def pause(self) -> None:
        with self.clock._lock:
            if self._waits == 0 and not self._ended:
                self._since = self.clock._now()
                self.clock._stop()
            self._waits += 1

    def resume(self) -> None:
        with self.clock._lock:
            self._waits -= 1
            if self._waits == 0 and not self._ended:
                self.waited_s += self.clock._now() - self._since
                self.clock._start()

    def end(self) -> None:
        with self.clock._lock:
            self._ended = True
            if self._waits:
                self.waited_s += self.clock._now() - self._since
            else:
                self.clock._stop()


_clock: ContextVar[WorkClock | None] = ContextVar("clock", default=None)
_service: ContextVar[Service | None] = ContextVar("service", default=None)


@contextmanager
def waiting() -> Iterator[None]:
    """Leave the time of the block out of the work of the question whose call this is, if it is one."""
    service = _service.get()
    if service is None:
        yield
        return
    service.pause()
    try:
        yield
    finally:
        service.resume()


@asynccontextmanager
async def held(lock: asyncio.Lock | asyncio.Semaphore) -> AsyncIterator[None]:
    """Hold a lock or a slot; `waiting` until it is free."""
    with waiting():
        await lock.acquire()
    try:
        yield
    finally:
        lock.release()


@asynccontextmanager
async def time_limit(seconds_left: Callable[[], float | None]) -> AsyncIterator[asyncio.Timeout]:
    """End the block by a timeout when no seconds are left (None: without limit); they may stand still meanwhile."""
    loop = asyncio.get_running_loop()
    looks: list[asyncio.TimerHandle] = []

    def look() -> None:
        left_s = seconds_left()
        if left_s is not None and left_s <= 0:
            limit.reschedule(loop.time())
        elif left_s is not None:
            looks[:] = [loop.call_later(max(left_s, LOOK_S), look)]

    async with asyncio.timeout(None) as limit:
        look()
        try:
            yield limit
        finally:
            for each in looks:
                each.cancel()


async def counted(call: Awaitable[T]) -> T:
    """Await a call in a task of its own: the time that it computes is that of the question which started the task."""
    clock = _clock.get()
    return await (call if clock is None else _Steps(clock, call))


class _Steps(Generic[T]):
    """An awaitable whose steps, from one wait of the event loop to the next, are counted."""

    def __init__(self, clock: WorkClock, call: Awaitable[T]) -> None:
        self._clock, self._call = clock, call

    def __await__(self) -> Generator[Any, Any, T]:
        steps: Any = self._call.__await__()
        advance: Callable[[], Any] = partial(next, steps)
        while True:
            try:
                with self._clock.working():
                    awaited = advance()
            except StopIteration as end:
                result: T = end.value
                return result
            try:
                advance = partial(steps.send, (yield awaited))
            except BaseException as error:  # a cancellation, say: it is the inner call's to handle
                advance = partial(steps.throw, error)


GROWTH = 1.1
"""A call may cost this many times the largest call before it."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """The bill of one answer.

    `frames` counts different frames that a model saw, `frame_shows` every showing, `index_frames` the embedded frames
    of the videos in question. `frames_with_kept` are `frames` and those behind captions that an earlier run paid for
    and this one read: the number to compare with papers that caption again. In a video without pictures, captions that
    stand in the place of frames count there. Tokens are those of the calls; `cached_tokens` are
    among `input_tokens`. `model_seconds` adds up the calls, some of which run side by side; `seconds` are those of the
    question's own work, without waiting for other questions (`kinodex.agent.limits`). `declined` replies gave up where
    that was not accepted. `estimated_tokens` are those of the `unknown_calls`, whose servers do not count; a budget
    counts them too. `sheets` are contact sheets that stood for several frames, and `left_out_frames` found no place on
    one: counted among `frames` all the same. `screen_lines` are the different lines of text on screen that were quoted,
    `chapters` the scenes and chapters whose titles were, and `videos_without_chapters` the videos that lack them.
    """

    frames: int = 0
    frame_shows: int = 0
    index_frames: int = 0
    frames_with_kept: int = 0
    calls: int = 0
    cached_calls: int = 0
    invalid_replies: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0
    model_seconds: float = 0.0
    declined: int = 0
    unknown_calls: int = 0
    estimated_tokens: int = 0
    sheets: int = 0
    left_out_frames: int = 0
    screen_lines: int = 0
    chapters: int = 0
    videos_without_chapters: int = 0

    @property
    def tokens(self) -> int:
        """Tokens in and out, known and estimated: what a budget counts."""
        return self.input_tokens + self.output_tokens + self.estimated_tokens


@dataclass(slots=True)
class Account:
    """The running ledger of one question, and the rest of its budget."""

    budget: Budget
    index_frames: int
    clock: WorkClock = field(default_factory=WorkClock)
    """Seconds of the question's own work: waiting for other questions is none."""
    rounds: int = 0
    _shown: set[tuple[str, int]] = field(default_factory=set)
    _claimed: set[tuple[str, int]] = field(default_factory=set)
    _captioned: set[tuple[str, int]] = field(default_factory=set)
    _screen_lines: set[Note] = field(default_factory=set)
    _spent: Ledger = field(default_factory=Ledger)
    _round_began: Ledger = field(default_factory=Ledger)
    _in_flight: int = 0
    _in_flight_tokens: int = 0
    _largest: Ledger = field(default_factory=Ledger)
    """The most tokens, money and seconds that one call took so far, each by itself."""

    @property
    def ledger(self) -> Ledger:
        return replace(
            self._spent,
            frames=len(self._shown),
            frames_with_kept=len(self._shown | self._captioned),
            index_frames=self.index_frames,
            screen_lines=len(self._screen_lines),
            seconds=self.clock.seconds,
        )

    def shown_frame_nos(self, video_id: str) -> list[int]:
        return [frame_no for seen_id, frame_no in self._shown if seen_id == video_id]

    def begin_round(self) -> int:
        """Count a new round, from 1, and record the costs before it."""
        self.rounds += 1
        self._round_began = self.ledger
        return self.rounds

    def begin_call(self, frames: Sequence[ShownFrame], tokens: int = 0) -> None:
        """Count a call of about so many tokens as in flight, and its frames as shown."""
        self._in_flight += 1
        self._in_flight_tokens += tokens
        self.count_shown(frames)

    def count_shown(self, frames: Sequence[ShownFrame]) -> None:
        self._shown |= {(frame.video_id, frame.frame_no) for frame in frames}
        self._spent = replace(self._spent, frame_shows=self._spent.frame_shows + len(frames))

    def count_captioned(self, video_id: str, frame_nos: Iterable[int]) -> None:
        self._captioned |= {(video_id, frame_no) for frame_no in frame_nos}

    def count_screen_text(self, notes: Iterable[Note]) -> None:
        """Count those of some notes, which a model is given, that quote text on screen."""
        self._screen_lines |= {note for note in notes if note.source == "screen_text"}

    def count_chapters(self, notes: Sequence[Note], *, without: int) -> None:
        """Count the scenes and chapters that prompts list, and the videos of which there are none to list."""
        self._spent = replace(self._spent, chapters=len(notes), videos_without_chapters=without)

    def count_declined(self) -> None:
        self._spent = replace(self._spent, declined=self._spent.declined + 1)

    def end_call(self, tokens: int = 0) -> None:
        self._in_flight -= 1
        self._in_flight_tokens -= tokens

    @property
    def idle_s(self) -> float:
        """Seconds for which no call was in flight and nothing was computed."""
        return 0.0 if self._in_flight else self.clock.idle_s

    def charge(self, usage: Usage, *, cached: bool, invalid: bool, seconds: float) -> None:
        spent = self._spent
        used: dict[str, Any] = {
            each.name: getattr(spent, each.name) + getattr(usage, each.name) for each in fields(usage)
        }
        self._spent = replace(
            spent,
            calls=spent.calls + 1,
            cached_calls=spent.cached_calls + cached,
            invalid_replies=spent.invalid_replies + invalid,
            model_seconds=spent.model_seconds + seconds,
            **used,
        )
        most = self._largest
        self._largest = Ledger(
            input_tokens=max(most.input_tokens, usage.input_tokens + usage.output_tokens + usage.estimated_tokens),
            cost=max(most.cost, usage.cost),
            seconds=max(most.seconds, seconds),
        )

    @property
    def frames_left(self) -> int | None:
        return None if self.budget.frames is None else max(0, self.budget.frames - self.frames_taken)

    @property
    def frames_taken(self) -> int:
        return len(self._shown | self._claimed)

    def claim(self, video_id: str, frame_nos: Iterable[int]) -> None:
        """Take frames of a video out of the budget before they are shown: others are chosen at the same time."""
        self._claimed |= {(video_id, frame_no) for frame_no in frame_nos}

    @property
    def tokens_left(self) -> int | None:
        """Tokens that neither a call took nor one in flight is expected to take."""
        limit = self.budget.tokens
        return None if limit is None else limit - self._spent.tokens - self._in_flight_tokens

    @property
    def seconds_left(self) -> float | None:
        return None if self.budget.seconds is None else self.budget.seconds - self.ledger.seconds

    @property
    def longest_call_s(self) -> float:
        return self._largest.seconds

    def exhausted(self) -> str | None:
        """The budget that allows no further call at all, if one does."""
        return self._over(Ledger())

    def exhausted_by_call(self) -> str | None:
        """The budget that one more call, beside those in flight, would leave too small for a final one, if any."""
        return self._over(self._calls(self._in_flight + 2))

    def exhausted_by_round(self) -> str | None:
        """The budget that would not last for another round like the present one, if one would not."""
        if self.budget.rounds is not None and self.rounds >= self.budget.rounds:
            return "rounds"
        if self.frames_left == 0:
            return "frames"
        now, before, decisions = self.ledger, self._round_began, self._calls(2)
        tokens = now.tokens - before.tokens + decisions.tokens
        cost, seconds = now.cost - before.cost + decisions.cost, now.seconds - before.seconds + decisions.seconds
        return self._over(Ledger(input_tokens=tokens, cost=cost, seconds=seconds))

    def _calls(self, count: int) -> Ledger:
        """Expected costs of so many calls: of the largest so far, and more, since conversations grow."""
        most, grown = self._largest, count * GROWTH
        return Ledger(
            input_tokens=math.ceil(grown * most.input_tokens), cost=grown * most.cost, seconds=grown * most.seconds
        )

    def _over(self, more: Ledger) -> str | None:
        now = self.ledger
        for name in ("tokens", "seconds", "cost"):
            limit = getattr(self.budget, name)
            if limit is not None and getattr(now, name) + getattr(more, name) >= limit:
                return name
        return None


# A signal that ends one question early, from any thread.
#
# A stop is a budget that is spent at once: calls in flight are cut, no other begins, and the answer is the best so far.
# One last request for it may take `GRACE_S`; a second stop, or one `at_once`, cuts that too.

GRACE_S = 8.0
"""Seconds after a stop that are left for one last request: most replies come in less."""
STOPPED = "stopped"


class StopSignal:
    """Ends the question that it was passed to; without a call of `stop` it does nothing."""

    def __init__(self, grace_s: float = GRACE_S) -> None:
        self.grace_s = grace_s
        self._lock = threading.Lock()
        self._reason = STOPPED
        self._last_at: float | None = None
        self._looks: set[Callable[[], None]] = set()

    def stop(self, reason: str = STOPPED, *, at_once: bool = False) -> None:
        """End the question; `reason` becomes the answer's. The second call cuts the last request, as `at_once` does."""
        with self._lock:
            if self._last_at is None:
                self._reason = reason
                self._last_at = time.monotonic() + self.grace_s
            else:
                at_once = True
            if at_once:
                self._last_at = time.monotonic()
            for look in self._looks:  # their event loops run: who leaves takes its look away under this lock
                look()

    @property
    def stopped(self) -> bool:
        return self._last_at is not None

    def over(self, *, final: bool = False) -> str | None:
        """The reason why no call may begin, if none may; a `final` one may until the grace is over."""
        left_s = self.seconds_left(final=final)
        return self._reason if left_s is not None and left_s <= 0 else None

    def seconds_left(self, *, final: bool) -> float | None:
        """Seconds until a call is cut: none left after a stop, or the rest of the grace; None while nothing is."""
        last_at = self._last_at
        if last_at is None:
            return None
        return last_at - time.monotonic() if final else 0.0

    @asynccontextmanager
    async def limit(self, *, final: bool) -> AsyncIterator[asyncio.Timeout]:
        """End the block by a timeout when its call is cut."""
        loop = asyncio.get_running_loop()
        is_open = True

        def cut() -> None:
            left_s = self.seconds_left(final=final)
            if is_open and left_s is not None and not limit.expired():
                limit.reschedule(loop.time() + max(left_s, 0.0))

        def look() -> None:
            loop.call_soon_threadsafe(cut)

        async with asyncio.timeout(None) as limit:
            with self._lock:
                self._looks.add(look)
            try:
                cut()
                yield limit
            finally:
                is_open = False
                with self._lock:
                    self._looks.discard(look)


# Calls awaited at once, none of which outlives an error of another.

A = TypeVar("A")


async def gather_all(calls: Sequence[Awaitable[A]]) -> list[A]:
    """Await calls at once, results in order; if one fails, the others are cancelled before its error goes on."""
    tasks = [asyncio.ensure_future(counted(call)) for call in calls]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for call in calls:  # one that was cancelled before it began would warn that it was never awaited
            if isinstance(call, Coroutine):
                call.close()
