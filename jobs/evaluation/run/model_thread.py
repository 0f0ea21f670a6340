"""Models behind endpoints, asked from a thread of their own.

What an agent does between its calls (reading frames, comparing vectors) takes some milliseconds at a time, in which its
event loop sends and receives nothing. With dozens of calls under way that adds up, and the endpoint waits. The wire has
its own loop here, so that a reply makes room for the next request at once.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from threading import Thread
from typing import Any, TypeVar

from agent.core.protocol import Exchange, Model, Models, R, Request
from agent.environment import Environment
from agent.models.openai_compatible import OpenAIModel
from jobs.model_choice import ModelChoice, ModelsFor, chosen_models

T = TypeVar("T")

SWITCH_S = 0.0002
"""How long a thread computes at most while another one waits to: the wire's are short, and should not wait long."""


@asynccontextmanager
async def models_on_a_thread(choice: ModelChoice) -> AsyncIterator[ModelsFor]:
    """What `chosen_models` gives, with models behind endpoints asked from a thread of their own."""
    with _running_loop() as wire, _quick_switches():
        opened, closing = asyncio.get_running_loop().create_future(), asyncio.Event()
        here = asyncio.get_running_loop()

        async def hold() -> None:
            async with chosen_models(choice) as models_for:
                here.call_soon_threadsafe(opened.set_result, models_for)
                await closing.wait()

        holding = asyncio.ensure_future(_elsewhere(wire, hold()))
        await asyncio.wait([opened, holding], return_when=asyncio.FIRST_COMPLETED)
        if not opened.done():
            holding.result()  # raises what opening raised
        models_for: ModelsFor = opened.result()
        try:
            yield lambda environment: _asked_on(wire, models_for, environment)
        finally:
            wire.call_soon_threadsafe(closing.set)
            await holding


class _Remote:
    """A model whose requests are sent by another thread's loop."""

    def __init__(self, model: Model, wire: asyncio.AbstractEventLoop) -> None:
        self._model, self._wire = model, wire

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def has_language(self) -> bool:
        return self._model.has_language

    async def ask(self, request: Request[R]) -> Exchange[R]:
        return await _elsewhere(self._wire, self._model.ask(request))


def _asked_on(wire: asyncio.AbstractEventLoop, models_for: ModelsFor, environment: Environment) -> Models:
    models = models_for(environment)
    if isinstance(models, Mapping):
        return {role: _Remote(each, wire) if isinstance(each, OpenAIModel) else each for role, each in models.items()}
    return _Remote(models, wire) if isinstance(models, OpenAIModel) else models


async def _elsewhere(loop: asyncio.AbstractEventLoop, call: Coroutine[Any, Any, T]) -> T:
    outcome = await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_outcome(call), loop))
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


async def _outcome(call: Coroutine[Any, Any, T]) -> T | BaseException:
    """What a call gives or raises: an error that whoever asked no longer waits for would be logged as a fault."""
    outcomes: Sequence[T | BaseException] = await asyncio.gather(call, return_exceptions=True)
    return outcomes[0]


@contextmanager
def _running_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop that runs in a thread of its own until the block ends."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, name="wire", daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def _quick_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
