"""One thread with an event loop of its own, where all questions of a server are answered.

Models belong to the loop that opened them, and a library's caches to one thread; both live here, so that an agent at
work holds up no page.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from contextlib import ExitStack
from typing import Any

from kinodex.agent.protocol.exchange import Models
from kinodex.agent.videos.environment import Environment
from kinodex.jobs.model_loop import ModelLoop
from kinodex.jobs.models import ModelChoice, chosen_models

PATIENCE_S = 5.0
"""Seconds that calls have to end when the thread is closed; then they are cancelled."""


class AskingThread:
    """Runs calls until it is closed, with the models of a choice. Raises what opening the models raises."""

    def __init__(self, choice: ModelChoice) -> None:
        self._calls: set[Future[None]] = set()
        with ExitStack() as stack:
            self._loop = stack.enter_context(ModelLoop("questions"))
            self._models = self._loop.open(chosen_models(choice))
            self._opened = stack.pop_all()

    def models(self, environment: Environment) -> Models:
        return self._models(environment)

    def submit(self, call: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Begin a call in this thread; it deals with its errors itself."""
        future = self._loop.submit(call())
        self._calls.add(future)
        future.add_done_callback(self._calls.discard)

    def close(self, patience_s: float = PATIENCE_S) -> None:
        """Wait so long for all calls, cancel the rest, close the models and end the thread."""
        wait([*self._calls], timeout=patience_s)
        self._opened.close()
