"""Replies: the classes from which those of all requests derive, and how their values are read.

A reply's class, its JSON schema, the words about it in the prompt and its example have one order (`strict_schema`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, model_validator

from kinodex.agent.answer_rules import Declining
from kinodex.agent.replies.schema import REASONING, REASONING_NAMES

INSUFFICIENT = "insufficient_evidence"


def allowed_actions(actions: Sequence[str], declining: Declining) -> tuple[str, ...]:
    """Return the actions of a reply without "insufficient_evidence" where that is not allowed."""
    return tuple(each for each in actions if each != INSUFFICIENT or declining == "allowed")


class Reply(BaseModel):
    """A reply; unknown keys are dropped."""

    model_config = ConfigDict(extra="ignore", frozen=True, json_schema_extra={"additionalProperties": False})

    @property
    def declines(self) -> bool:
        """True if it gives up: the evidence is insufficient."""
        return getattr(self, "action", None) == INSUFFICIENT

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read the reply from a text with its thoughts, for requests of form "text"; raises `InvalidReply`."""
        raise NotImplementedError(f"{cls.__name__} is not asked for as text")


def described(text: str) -> ConfigDict:
    """Configure the description in a reply's schema: models read it, and cached replies and traces depend on it."""
    return ConfigDict(json_schema_extra={"additionalProperties": False, "description": text})


def with_reasoning(value: object) -> object:
    """Return a JSON object with its reasons, under whatever name, as the text `reasoning`; anything else as it is."""
    if not isinstance(value, Mapping):
        return value
    named = {str(key).casefold(): key for key in value}
    found = [value[named[name]] for name in REASONING_NAMES if name in named]
    return {**value, REASONING: _as_text(next((each for each in found if each is not None), ""))}


def read_as(read: Callable[[object], object]) -> Any:
    """Make a validator of a reply's class from a function that completes the JSON value before it is validated."""
    return model_validator(mode="before")(cast(Any, classmethod(lambda cls, value: read(value))))


def read_alone(name: str, kind: type = object) -> Any:
    """Make a validator that reads a value of a kind which stands alone, a list or a number, as the field `name`."""
    return read_as(lambda value: {name: value} if isinstance(value, kind) and not isinstance(value, Mapping) else value)


def _as_text(thoughts: object) -> str:
    if isinstance(thoughts, list):
        return " ".join(map(_as_text, thoughts))
    return thoughts if isinstance(thoughts, str) else json.dumps(thoughts, ensure_ascii=False)


STEP_BY_STEP_TOKENS = 2048
"""`Request.reply_tokens` of a reply with reasons that are as long as they have to be."""


class Reasoned(Reply):
    """A reply that begins with its reasons: a model that writes its choice first has not thought about it.

    They are read under other names too ("thought", "explanation"), and never make a reply invalid.
    """

    reasoning: str = Field(default="", description="your reasoning, step by step")
    _read_reasoning = read_as(with_reasoning)


R = TypeVar("R", bound=Reply)
