"""Models whose requests are sent by the event loop of another thread, for agents in this one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from kinodex.agent.errors import TakesNoPictures
from kinodex.agent.protocol.exchange import Exchange, Model, Models, Usage
from kinodex.agent.protocol.reply import R
from kinodex.agent.protocol.request import Request
from kinodex.index.shared_switch import SharedSwitch
from kinodex.jobs.model_loop import ModelLoop

if TYPE_CHECKING:
    from kinodex.agent.models.openai_model import OpenAIModel

SWITCH_S = 0.0002
"""Longest time that a thread computes while another one waits: the models' turns are short and should come soon."""


class _ModelElsewhere:
    """A model whose requests are sent by another thread's loop."""

    def __init__(self, model: OpenAIModel, loop: ModelLoop) -> None:
        self._model, self._loop = model, loop

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def has_language(self) -> bool:
        return self._model.has_language

    async def ask(self, request: Request[R]) -> Exchange[R]:
        return await self._loop.reply(self._model.ask(request))

    async def check_sight(self) -> tuple[TakesNoPictures | None, Usage | None]:
        return await self._loop.reply(self._model.check_sight())


def models_in(loop: ModelLoop, models: Models) -> Models:
    """Return the same models, those behind endpoints asked in the loop that opened them."""
    from kinodex.agent.models.openai_model import OpenAIModel

    def elsewhere(model: Model) -> Model:
        return _ModelElsewhere(model, loop) if isinstance(model, OpenAIModel) else model

    if isinstance(models, Mapping):
        return {role: elsewhere(each) for role, each in models.items()}
    return elsewhere(models)


def _switch_quickly() -> Callable[[], None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    return lambda: sys.setswitchinterval(before)


quick_switches = SharedSwitch(_switch_quickly)
"""Shared by the runs of this process: the last one to end puts the interval back."""
