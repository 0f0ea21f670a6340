"""A model that never has enough: it explores as long as it may, so that a run has all its rounds.

For counting the tokens of long runs of the tree agents. All requests but decisions go to another model, and the reasons
of scores are made as long as language models write them: they are part of later prompts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from agent.core.protocol import Exchange, Model, R, Request
from agent.requests.tree import Decide

REASON = (
    "The frames at the borders of segment {number} show the same place without the thing in question; it may come into "
    "view in between, since the scene changes there."
)
REASON_FIELDS = ("explanation", "reasoning")


@dataclass(frozen=True, slots=True)
class RestlessModel:
    """A model that answers as `model` does, but explores the best open segment until it must answer."""

    model: Model

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def has_language(self) -> bool:
        return self.model.has_language

    async def ask(self, request: Request[R]) -> Exchange[R]:
        number = _best_open(request)
        if number is not None:
            return Exchange(request.Reply.model_validate(_exploring(number)), None)
        exchange = await self.model.ask(request)
        return exchange if exchange.reply is None else replace(exchange, reply=_with_reasons(exchange.reply))


def _best_open(request: Request[Any]) -> int | None:
    """The segment to explore next; None if the request is not for a decision, or none can be explored."""
    if not isinstance(request, Decide) or request.must_answer:
        return None
    open_ones = [each for each in request.candidates if each.explorable]
    return max(open_ones, key=lambda each: each.score or 0.0).segment.number if open_ones else None


def _exploring(number: int) -> dict[str, Any]:
    thought = REASON.format(number=number)
    return {
        "reasoning": thought,
        "action": "explore",
        "segment": number,
        "option": None,
        "answer": None,
        "evidence": [],
    }


def _with_reasons(reply: R) -> R:
    """Put a reason of usual length to each score of a reply."""
    scores = getattr(reply, "segments", None)
    if not isinstance(scores, list):
        return reply
    return reply.model_copy(update={"segments": [_with_reason(each) for each in scores]})


def _with_reason(score: Any) -> Any:
    names = [name for name in REASON_FIELDS if name in type(score).model_fields]
    return score.model_copy(update={name: REASON.format(number=score.segment) for name in names})
