"""A thread for the models behind endpoints, with an event loop of its own.

What an agent does between its calls (reading frames, comparing vectors) takes some milliseconds at a time, in which its
event loop sends and receives nothing. With dozens of calls in flight that adds up, and the endpoint waits. The models
have their own loop here, so that a reply makes room for the next request at once.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from threading import Thread
from typing import Any, TypeVar

from agent.core.protocol import Exchange, Model, Models, R, Request
from agent.models.openai_compatible import OpenAIModel
from index.embedding.model_source import SharedSwitch
from jobs.model_choice import ModelChoice, ModelsFor, chosen_models

T = TypeVar("T")

SWITCH_S = 0.0002
"""Longest time that a thread computes while another one waits: the models' turns are short and should come soon."""


@asynccontextmanager
async def open_model_thread(choice: ModelChoice) -> AsyncIterator[ModelsFor]:
    """Open the models of a choice as `chosen_models` does; those behind endpoints run in a thread of their own."""
    with _running_loop() as loop, _quick_switches.held():
        here = asyncio.get_running_loop()
        opened, closing = here.create_future(), asyncio.Event()

        async def hold() -> None:
            async with chosen_models(choice) as models_for:
                here.call_soon_threadsafe(opened.set_result, models_for)
                await closing.wait()

        holding = asyncio.ensure_future(_call_in(loop, hold()))
        await asyncio.wait([opened, holding], return_when=asyncio.FIRST_COMPLETED)
        if not opened.done():
            holding.result()  # raises the error of opening
        models_for: ModelsFor = opened.result()
        try:
            yield lambda environment: _in_thread(loop, models_for(environment))
        finally:
            loop.call_soon_threadsafe(closing.set)
            await holding


class _ThreadModel:
    """A model whose requests are sent by another thread's loop."""

    def __init__(self, model: Model, loop: asyncio.AbstractEventLoop) -> None:
        self._model, self._loop = model, loop

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def has_language(self) -> bool:
        return self._model.has_language

    async def ask(self, request: Request[R]) -> Exchange[R]:
        return await _call_in(self._loop, self._model.ask(request))


def _in_thread(loop: asyncio.AbstractEventLoop, models: Models) -> Models:
    if isinstance(models, Mapping):
        return {
            role: _ThreadModel(each, loop) if isinstance(each, OpenAIModel) else each for role, each in models.items()
        }
    return _ThreadModel(models, loop) if isinstance(models, OpenAIModel) else models


async def _call_in(loop: asyncio.AbstractEventLoop, call: Coroutine[Any, Any, T]) -> T:
    outcome = await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_outcome(call), loop))
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


async def _outcome(call: Coroutine[Any, Any, T]) -> T | BaseException:
    """Return what a call returns or raises: an error that its caller no longer waits for would be logged as a fault."""
    outcomes: Sequence[T | BaseException] = await asyncio.gather(call, return_exceptions=True)
    return outcomes[0]


@contextmanager
def _running_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """Run an event loop in a thread of its own until the block ends."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, name="models", daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _switch_quickly() -> Callable[[], None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    return lambda: sys.setswitchinterval(before)


_quick_switches = SharedSwitch(_switch_quickly)
"""Shared by the runs of this process: the last one to end puts the interval back."""
