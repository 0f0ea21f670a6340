"""What a server sent, read out of a chat completion as far as servers agree on one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, Field


@dataclass(frozen=True, slots=True)
class Completion:
    """`text` is as the model wrote it; `refusal` is empty unless the model refused.

    Of a reply that calls tools, `text` is the `calls` as JSON, one a line: `{"tool": NAME, ARGUMENT: VALUE, ...}`.
    """

    text: str
    calls: int = 0
    refusal: str = ""
    finish_reason: str = "stop"
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0


class _Part(BaseModel):
    type: str = "text"
    text: str | None = None


class _Function(BaseModel):
    name: str = ""
    arguments: object = None


class _Call(BaseModel):
    function: _Function


class _Message(BaseModel):
    content: str | list[_Part] | None = None
    tool_calls: list[_Call] | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _PromptDetails(BaseModel):
    cached_tokens: int | None = None


class _Usage(BaseModel):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None


class _Answer(BaseModel):
    choices: list[_Choice] = Field(min_length=1)
    usage: _Usage | None = None


def read_completion(answer: object) -> Completion:
    """The completion in a server's answer (as JSON values).

    Raises pydantic's ValidationError if there is none in it.
    """
    sent = _Answer.model_validate(answer)
    choice, usage = sent.choices[0], sent.usage or _Usage()
    details = usage.prompt_tokens_details or _PromptDetails()
    calls = choice.message.tool_calls or []
    return Completion(
        text=_whole(_called(calls) if calls else _text(choice.message.content)),
        calls=len(calls),
        refusal=" ".join(_whole(choice.message.refusal or "").split()),
        finish_reason=choice.finish_reason or "stop",
        input_tokens=_counted(usage.prompt_tokens),
        output_tokens=_counted(usage.completion_tokens),
        cached_tokens=_counted(details.cached_tokens),
    )


def _counted(tokens: int | None) -> int:
    """Tokens as told; none where nothing is told, or less than nothing, which a budget would take for money back."""
    return max(0, tokens or 0)


def _text(content: str | list[_Part] | None) -> str:
    """Some servers send the text in parts, with what the model thought in parts of another type."""
    if isinstance(content, list):
        return "".join(part.text or "" for part in content if part.type == "text")
    return content or ""


def _called(calls: Sequence[_Call]) -> str:
    return "\n".join(_call(call.function.name, call.function.arguments) for call in calls)


def _call(name: str, arguments: object) -> str:
    """One call as JSON; arguments that are no JSON object stay as they came, to be found out when they are read."""
    try:
        values: Any = json.loads(arguments.strip() or "{}") if isinstance(arguments, str) else arguments or {}
        return json.dumps({"tool": name} | values | {"tool": name}, ensure_ascii=False)
    except (ValueError, TypeError, RecursionError):
        return f"{name} {arguments}"


def _whole(text: str) -> str:
    """The text without halves of characters: they pass through JSON, but cannot be sent again or written."""
    return text.encode(errors="replace").decode()
