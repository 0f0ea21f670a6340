"""The offer of a server to those who ask: agents, models, limits, and for each library if it can be asked about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agent.variants.registry import VARIANTS
from index.redact import redact_values
from jobs.model_choice import BUILTIN, describe_models
from jobs.serve.settings import ServeSettings

if TYPE_CHECKING:
    from index.library import Library

HOW = "Start the server with a language model: kinodex serve LIBRARY --model NAME --base-url URL"
"""The way to give a model, for a page that cannot ask without one."""


def offer(settings: ServeSettings, libraries: Sequence[Library], refusals: Sequence[str | None]) -> dict[str, Any]:
    """All that the page needs to know to ask. `refusals` say why a library cannot be asked about; None if it can."""
    has_language = settings.choice.has_language
    known = [each for each in VARIANTS if each.name != settings.agent.name]
    agents = [each for each in (settings.agent, *known) if has_language or not each.needs_language]
    can_ask = any(refusal is None for refusal in refusals)
    spaces = [library.space(settings.space).name for library in libraries]
    value = {
        "can_ask": can_ask,
        "how": None if can_ask else HOW,
        "agents": [{"name": each.name, "summary": each.line} for each in agents],
        "agent": settings.agent.name,
        "models": describe_models(settings.choice),
        "max_questions": settings.at_once,
        "usd_a_day": settings.usd_a_day,
        "is_drawn_world": all(space == BUILTIN for space in spaces),
        "libraries": [
            {
                "key": number,
                "can_ask": refusal is None,
                "how": None if refusal is None else HOW,
                "is_drawn_world": space == BUILTIN,
            }
            for number, (refusal, space) in enumerate(zip(refusals, spaces, strict=True))
        ],
    }
    redacted: dict[str, Any] = redact_values(value)
    return redacted
