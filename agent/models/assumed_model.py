"""A model that is not asked: what an agent assumes of it replies, and costs what that would."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kinodex.agent.models.openai_model import wire_messages
from kinodex.agent.models.reply_parser import parse_reply
from kinodex.agent.models.roles import Role
from kinodex.agent.prompts.tokens import estimate_tokens, picture_rule, text_tokens
from kinodex.agent.protocol.exchange import Exchange, Usage
from kinodex.agent.protocol.reply import R
from kinodex.agent.protocol.request import Request

Kind = type[Request[Any]]
Assumes = Callable[[Request[Any]], object]
"""What an agent assumes that a model replies (`Variant.assumes`); None for the request's own example."""


def expected_usage(request: Request[Any], role: Role, reply: str = "") -> Usage:
    """Estimate what a request to a role takes: tokens in, those of the reply or of its example, and their price."""
    reply = reply or json.dumps(request.example())
    messages = wire_messages(request, role.image_side_px, role.reasoning, role.detail)
    return role.price.usage(estimate_tokens(messages, picture_rule(role.model)), text_tokens(reply), 0)


@dataclass(slots=True)
class Bill:
    """Calls and costs by the class of their request."""

    calls: Counter[Kind] = field(default_factory=Counter)
    frames: Counter[Kind] = field(default_factory=Counter)
    usage: dict[Kind, Usage] = field(default_factory=dict)

    def add(self, request: Request[R], usage: Usage) -> None:
        """Add one call."""
        kind = type(request)
        self.calls[kind] += 1
        self.frames[kind] += len(request.frames)
        self.usage[kind] = self.usage.get(kind, Usage()) + usage

    def costs(self, counts: Callable[[Kind], bool]) -> dict[str, float]:
        """Return the costs of the kinds of request that count: calls, frames, tokens in and out, money."""
        kinds = [kind for kind in self.calls if counts(kind)]
        usage = sum((self.usage[kind] for kind in kinds), Usage())
        calls, frames = (sum(each[kind] for kind in kinds) for each in (self.calls, self.frames))
        spent = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens, "cost": usage.cost}
        return {"calls": calls, "frames": frames, **spent}


@dataclass(frozen=True, slots=True)
class Assumed:
    """The model of a role, in whose place an agent's assumptions reply; `bill` adds up what that would cost."""

    role: Role
    assumes: Assumes
    bill: Bill
    has_language: bool = True

    @property
    def name(self) -> str:
        return self.role.model

    async def ask(self, request: Request[R]) -> Exchange[R]:
        """Answer a request; see `kinodex.agent.protocol.exchange.Model`."""
        text = assumed_reply(self.assumes, request)
        usage = expected_usage(request, self.role, text)
        self.bill.add(request, usage)
        reply, invalid = parse_reply(text, request)
        return Exchange(reply, invalid, usage, raw=text)


def assumed_reply(assumes: Assumes, request: Request[Any]) -> str:
    """Return the text of a reply by what the agent assumes, else the request's own example."""
    assumed = assumes(request)
    if assumed is None:
        assumed = request.example()
    return assumed if isinstance(assumed, str) else json.dumps(assumed)
