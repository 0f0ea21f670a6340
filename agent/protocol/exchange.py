"""Exchanges: a model, its reply to a request, and what that cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Generic, Protocol

from kinodex.agent.protocol.reply import R
from kinodex.agent.protocol.request import Request


@dataclass(frozen=True, slots=True)
class Usage:
    """Costs of an exchange. `cached_tokens` are those of `input_tokens` that the server had cached.

    A server that does not say how many tokens it read makes an exchange one of `unknown_calls`: its tokens are
    `estimated_tokens`, in and out, and its cost is an estimate too. `sheets` and `left_out_frames` count what was sent
    to a server that takes few pictures.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: float = 0.0
    unknown_calls: int = 0
    estimated_tokens: int = 0
    sheets: int = 0
    left_out_frames: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))


@dataclass(frozen=True, slots=True)
class Exchange(Generic[R]):
    """An answered request. Either `reply` or `invalid` (the fault, in one line) is set."""

    reply: R | None
    invalid: str | None
    usage: Usage = Usage()
    cached: bool = False
    raw: str = ""
    seconds: float = 0.0
    waited_s: float = 0.0
    """Seconds that it waited for other questions; they are no part of `seconds`."""


class Model(Protocol):
    """A model that answers requests. A bad reply is an `Exchange` with `invalid`; no reply raises `ModelError`."""

    @property
    def name(self) -> str: ...

    @property
    def has_language(self) -> bool:
        """False for a model that answers from vectors alone: agents that reason in words cannot use it."""
        ...

    async def ask(self, request: Request[R]) -> Exchange[R]: ...


Models = Model | Mapping[str, Model]
"""One model for everything, or one per role; role "default" answers for roles that are not listed."""


def policy_has_language(models: Models) -> bool:
    """Return False if the policy answers from vectors alone."""
    policy = model_for(models, "policy")
    return policy is None or getattr(policy, "has_language", True)


def model_for(models: Models, role: str) -> Model | None:
    return models.get(role) or models.get("default") if isinstance(models, Mapping) else models
