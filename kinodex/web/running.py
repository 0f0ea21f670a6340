"""One question while it is answered: its trace so far, and its end, for any number of readers in other threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from kinodex.agent.answer import Answer
from kinodex.agent.limits.stop import STOPPED, StopSignal
from kinodex.agent.protocol.exchange import Exchange, Model, Models
from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.reply import R
from kinodex.agent.protocol.request import Request
from kinodex.agent.traces.replay import ReplayModel
from kinodex.agent.traces.trace import Record
from kinodex.requests import Ask

State = Literal["running", "stopping", "done", "failed"]
FINISHED: tuple[State, ...] = ("done", "failed")


@dataclass(eq=False)
class Running:
    """A question under way in another thread; `records` grow, and `finished` waits for the answer."""

    key: str
    library: int
    request: Ask
    asked_at: datetime
    state: State = "running"
    records: list[Record] = field(default_factory=list)
    answer: Answer | None = None
    failure: Exception | None = None
    tried: str = ""
    remedy: str = ""
    """Beside a failure: what was done until then, and the one thing to do about it."""
    signal: StopSignal = field(default_factory=StopSignal)
    looking: list[tuple[ShownFrame, ...]] = field(default_factory=list)
    """Frames of the calls under way, which the trace holds only once they are answered."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _version: int = 0
    _readers: set[_Reader] = field(default_factory=set)

    @property
    def error(self) -> str | None:
        return None if self.failure is None else str(self.failure)

    @property
    def version(self) -> int:
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
        with self._lock:
            self.records.append(record)
            self._change()

    @contextmanager
    def calling(self, frames: tuple[ShownFrame, ...]) -> Iterator[None]:
        """Show readers what a model looks at, until its reply."""
        with self._lock:
            self.looking.append(frames)
            self._change()
        try:
            yield
        finally:
            with self._lock:
                self.looking.remove(frames)
                self._change()

    def end(self, result: Answer | Exception) -> None:
        with self._lock:
            self.answer, self.failure = (result, None) if isinstance(result, Answer) else (None, result)
            self.state = "failed" if self.answer is None else "done"
            self._change()

    async def changes(self, since: int = 0, beat_s: float | None = None) -> AsyncGenerator[int | None, None]:
        """Yield the number of changes when it is above `since`, until the end; None after each `beat_s` without one."""
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
                try:
                    await asyncio.wait_for(reader.changed.wait(), beat_s)
                except TimeoutError:
                    yield None
        finally:
            with self._lock:
                self._readers.discard(reader)

    async def finished(self) -> Answer:
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


@dataclass(frozen=True, eq=False, slots=True)
class _WatchedModel:
    """A model whose calls the readers of a question see while they are under way."""

    model: Model
    running: Running

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def has_language(self) -> bool:
        return getattr(self.model, "has_language", True)

    @property
    def check_sight(self) -> Any:
        return getattr(self.model, "check_sight", None)

    async def ask(self, request: Request[R]) -> Exchange[R]:
        with self.running.calling(request.frames):
            return await self.model.ask(request)


def watched(models: Models, running: Running) -> Models:
    if isinstance(models, Mapping):
        return {role: _WatchedModel(each, running) for role, each in models.items()}
    return models if isinstance(models, ReplayModel) else _WatchedModel(models, running)
