"""One thread with an event loop of its own, where all questions of a server are answered.

Models belong to the loop that opened them, and a library's caches to one thread; both live here, so that an agent at
work holds up no page.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future

from kinodex.agent.environment import Environment
from kinodex.agent.protocol import Models
from kinodex.jobs.models import ModelChoice, ModelsFor, chosen_models

PATIENCE_S = 5.0
"""Seconds that calls have to end when the thread is closed; then they are cancelled."""


class AskingThread:
    """Runs calls until it is closed, with the models of a choice. Raises what opening the models raises."""

    def __init__(self, choice: ModelChoice) -> None:
        self._choice, self._patience_s = choice, PATIENCE_S
        self._opened: Future[tuple[asyncio.AbstractEventLoop, ModelsFor, asyncio.Event]] = Future()
        self._calls: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._work()), name="questions")
        self._thread.start()
        try:
            self._loop, self._models, self._closing = self._opened.result()
        except BaseException:
            self._thread.join()
            raise

    def models(self, environment: Environment) -> Models:
        return self._models(environment)

    def submit(self, call: Callable[[], Awaitable[None]]) -> None:
        """Begin a call in this thread; it deals with its errors itself."""
        self._loop.call_soon_threadsafe(self._begin, call)

    def close(self, patience_s: float = PATIENCE_S) -> None:
        """Wait so long for all calls, cancel the rest, close the models and end the thread."""
        self._patience_s = patience_s
        self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join()

    async def _work(self) -> None:
        closing = asyncio.Event()
        try:
            async with chosen_models(self._choice) as models:
                self._opened.set_result((asyncio.get_running_loop(), models, closing))
                await closing.wait()
                if self._calls:
                    await asyncio.wait(self._calls, timeout=self._patience_s)
                left = list(self._calls)
                for each in left:
                    each.cancel()
                await asyncio.gather(*left, return_exceptions=True)
        except BaseException as error:
            if self._opened.done():
                raise
            self._opened.set_exception(error)

    def _begin(self, call: Callable[[], Awaitable[None]]) -> None:
        task = asyncio.ensure_future(call())
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)
