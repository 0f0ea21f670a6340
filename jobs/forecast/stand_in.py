"""A model that is rehearsed in the place of a language model: it sends nothing, and its replies cost what they would.

What the built-in model can answer (searches over a tree, descriptions in its own space, verdicts on notes) it answers;
so a rehearsal ends where the library settles the question. Agents that think in words get usual replies
(`stand_in_replies`), and every other request its own example. Tokens are estimates (`agent.prompts.token_estimate`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from agent.core.protocol import Exchange, R, Request, Usage
from agent.environment import Environment
from agent.errors import NeedsLanguage
from agent.models.openai_compatible import wire_messages
from agent.models.role_config import DEFAULT_ROLE, Role
from agent.models.rulebased.model import RuleBasedModel
from agent.models.structured_output import parse_reply
from agent.prompts.token_estimate import PictureRule, estimate_tokens, text_tokens
from agent.requests.describe import DescribeSegment
from jobs.forecast.stand_in_replies import explore_on, reply_in_words

DESCRIBED = 32
"""Segments that are described; the texts of these stand for those of further ones, which would take long."""


@dataclass(slots=True)
class Bill:
    """Calls and costs by the class of their request."""

    calls: Counter[str] = field(default_factory=Counter)
    frames: Counter[str] = field(default_factory=Counter)
    usage: dict[str, Usage] = field(default_factory=dict)
    captions: list[str] = field(default_factory=list)
    """Replies to the first requests to describe a segment."""

    def add(self, request: Request[R], usage: Usage) -> None:
        """Add one call."""
        kind = type(request).__name__
        self.calls[kind] += 1
        self.frames[kind] += len(request.frames)
        self.usage[kind] = self.usage.get(kind, Usage()) + usage


@dataclass(frozen=True, slots=True)
class StandIn:
    """The stand-in for the model of one role. It has that model's name, under which captions are stored."""

    role: Role
    rules: RuleBasedModel
    bill: Bill
    pictures: PictureRule = "openai"
    restless: bool = False
    """True for a search that goes on as long as it may, whatever it finds."""
    has_language: bool = True

    @property
    def name(self) -> str:
        return self.role.model

    async def ask(self, request: Request[R]) -> Exchange[R]:
        """Answer a request; see `agent.core.protocol.Model`."""
        text = await self._text(request)
        role = self.role
        joint = role.joins_schemas
        messages = wire_messages(request, role.image_side_px, role.reasoning, role.detail, joint=joint)
        usage = role.price.usage(estimate_tokens(messages, self.pictures), text_tokens(text), 0)
        self.bill.add(request, usage)
        reply, invalid = parse_reply(text, request)
        return Exchange(reply, invalid, usage, raw=text)

    async def _text(self, request: Request[R]) -> str:
        """The reply as a model would write it."""
        text, captions = reply_in_words(request, restless=self.restless), self.bill.captions
        text = explore_on(request) if text is None and self.restless else text
        if text is not None:
            return text
        if isinstance(request, DescribeSegment) and len(captions) == DESCRIBED:
            return captions[self.bill.calls["DescribeSegment"] % DESCRIBED]
        try:
            text = (await self.rules.ask(request)).raw
        except NeedsLanguage:
            text = json.dumps(request.example())
        if isinstance(request, DescribeSegment):
            captions.append(text)
        return text


def stand_ins(
    roles: Mapping[str, Role], environment: Environment, bill: Bill, *, restless: bool = False
) -> dict[str, StandIn]:
    """A stand-in for each role, or for the one that has no endpoint, all with one bill."""
    rules = RuleBasedModel(environment)
    named = roles or {DEFAULT_ROLE: Role(model="builtin")}
    return {name: StandIn(role, rules, bill, restless=restless) for name, role in named.items()}
