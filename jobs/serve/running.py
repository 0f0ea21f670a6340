"""One question while it is answered: its trace so far, and its end, for any number of readers in other threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from agent.answer import Answer
from agent.core.answer_rules import USUAL, AnswerRules
from agent.core.budget import Budget
from agent.core.question import Question
from agent.core.stop_signal import STOPPED, StopSignal
from agent.trace.trace import Record

State = Literal["running", "stopping", "done", "failed"]
FINISHED: tuple[State, ...] = ("done", "failed")
UNLIMITED = Budget()


@dataclass(frozen=True, slots=True)
class AskRequest:
    """A question for the agent of a name, about videos of a library (by its number) by id, first digits, title or path.

    Without `videos` it is about all, or those of the question `after` which it follows, by key.
    """

    library: int
    question: Question
    agent: str = "eea"
    videos: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    budget: Budget = UNLIMITED
    rules: AnswerRules = USUAL
    after: str | None = None


@dataclass(eq=False)
class Running:
    """A question under way in another thread; `records` grow, and `finished` waits for the answer."""

    key: str
    request: AskRequest
    asked_at: datetime
    state: State = "running"
    records: list[Record] = field(default_factory=list)
    answer: Answer | None = None
    failure: Exception | None = None
    signal: StopSignal = field(default_factory=StopSignal)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _version: int = 0
    _readers: set[_Reader] = field(default_factory=set)

    @property
    def error(self) -> str | None:
        """The reason in one line why there is no answer; None while there may be one."""
        return None if self.failure is None else str(self.failure)

    @property
    def version(self) -> int:
        """The number of changes so far."""
        return self._version

    def stop(self, reason: str = STOPPED, *, at_once: bool = False) -> None:
        """End it with the best answer so far, for a `reason`; once more, or `at_once`, without a last request."""
        with self._lock:
            if self.state in FINISHED:
                return
            self.state = "stopping"
            self._change()
        self.signal.stop(reason, at_once=at_once)

    def add(self, record: Record) -> None:
        """Add a record of the trace."""
        with self._lock:
            self.records.append(record)
            self._change()

    def end(self, result: Answer | Exception) -> None:
        """End with an answer, or with the error that there is in its place."""
        with self._lock:
            self.answer, self.failure = (result, None) if isinstance(result, Answer) else (None, result)
            self.state = "failed" if self.answer is None else "done"
            self._change()

    async def changes(self, since: int = 0) -> AsyncGenerator[int, None]:
        """Yield the number of changes so far whenever it is above `since`, until the question has ended."""
        reader = _Reader(asyncio.get_running_loop(), asyncio.Event())
        with self._lock:
            self._readers.add(reader)
        try:
            while True:
                reader.changed.clear()
                with self._lock:
                    version, ended = self._version, self.state in FINISHED
                if version > since:
                    since = version
                    yield version
                if ended:
                    return
                await reader.changed.wait()
        finally:
            with self._lock:
                self._readers.discard(reader)

    async def finished(self) -> Answer:
        """Wait for the answer; raises the error that ended it without one."""
        async for _ in self.changes():
            pass
        if self.answer is None:
            assert self.failure is not None
            raise self.failure
        return self.answer

    def _change(self) -> None:
        """Count a change and wake all readers; the lock is held, so that none of them leaves its loop meanwhile."""
        self._version += 1
        for reader in self._readers:
            reader.loop.call_soon_threadsafe(reader.changed.set)


@dataclass(frozen=True, eq=False, slots=True)
class _Reader:
    loop: asyncio.AbstractEventLoop
    changed: asyncio.Event
