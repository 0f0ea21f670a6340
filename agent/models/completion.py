"""Completions: the answers of servers, parsed as far as servers agree on their form.

Only `choices[0].message` is needed. Servers leave out `usage`, `finish_reason` and more, send content in parts, and
reasoning models behind some of them put the whole reply where their thoughts belong (`reasoning_content`, `reasoning`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from kinodex.agent.errors import InvalidReply
from kinodex.agent.models.loose_json import json_values
from kinodex.agent.replies.thoughts import is_thinking
from kinodex.index.nesting import parse_json as decoded

COUNTED = ("input_tokens", "output_tokens", "cached_tokens")
MOST_TOKENS = 10**9
"""Of one request; a larger count is none."""


@dataclass(frozen=True, slots=True)
class Completion:
    """One reply: `text` as the model wrote it; `refusal` is empty unless the model refused.

    In a reply that calls tools, `text` has the `calls` as JSON, one a line: `{"tool": NAME, ARGUMENT: VALUE, ...}`.
    """

    text: str
    thoughts: str = ""
    """Of a reasoning model, where the server sends them beside the text."""
    calls: int = 0
    refusal: str = ""
    finish_reason: str = "stop"
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    usage_known: bool = True
    """False if the server did not say how many tokens it read."""
    sheets: int = 0
    """Contact sheets in the request, and frames that were left out of it, because the server takes few pictures."""

    def reply(self, *, in_words: bool) -> str:
        """Return the text in which the reply stands; "" if the thoughts took all the tokens that there were.

        Some servers put the whole of it among the thoughts: then it is the last JSON object there, or all of them for
        a reply `in_words`, which has its own marks.
        """
        is_cut = self.finish_reason == "length"
        if self.text.strip():
            return "" if is_cut and is_thinking(self.text) else self.text
        if is_cut or not self.thoughts or in_words:
            return "" if is_cut else self.thoughts
        try:
            objects = [value for value in json_values(self.thoughts) if isinstance(value, dict)]
        except InvalidReply:
            return ""
        return json.dumps(objects[-1], ensure_ascii=False) if objects else ""

    def after(self, other: Completion) -> Completion:
        """Return this completion with what the one before it cost."""
        counts = {name: getattr(self, name) + getattr(other, name) for name in COUNTED}
        return replace(self, usage_known=self.usage_known and other.usage_known, **counts)


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
    reasoning_content: object = None
    reasoning: object = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: object = None


class _PromptDetails(BaseModel):
    cached_tokens: int | None = None


class _Usage(BaseModel):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None


class _Body(BaseModel):
    choices: list[_Choice] = Field(min_length=1)
    usage: object = None


def parse_completion(body: object) -> Completion:
    """Parse a server's answer, given as JSON values.

    Raises pydantic's ValidationError if it holds no completion.
    """
    parsed = _Body.model_validate(body)
    choice, usage = parsed.choices[0], _usage(parsed.usage)
    details = usage.prompt_tokens_details or _PromptDetails()
    calls = choice.message.tool_calls or []
    thoughts = choice.message.reasoning_content or choice.message.reasoning
    return Completion(
        text=_without_surrogates("\n".join(map(_call_as_json, calls)) if calls else _text_of(choice.message)),
        thoughts=_without_surrogates(thoughts) if isinstance(thoughts, str) else "",
        calls=len(calls),
        refusal=" ".join(_without_surrogates(choice.message.refusal or "").split()),
        finish_reason=str(choice.finish_reason or "stop"),
        input_tokens=_token_count(usage.prompt_tokens),
        output_tokens=_token_count(usage.completion_tokens),
        cached_tokens=_token_count(details.cached_tokens),
        usage_known=_token_count(usage.prompt_tokens) > 0,  # no request has no tokens: some servers fill in zeros
    )


def thoughts_field(body: object) -> str:
    """Find the field in which a server's answer has the model's thoughts beside its reply; "" if it has none."""
    message = _Body.model_validate(body).choices[0].message
    fields = {"reasoning_content": message.reasoning_content, "reasoning": message.reasoning}
    return next((name for name, said in fields.items() if isinstance(said, str) and said.strip()), "")


def _usage(sent: object) -> _Usage:
    """Return the usage that a server sends; an empty one if it sends none or makes no sense."""
    try:
        return _Usage.model_validate(sent or {})
    except ValidationError:
        return _Usage()


def _token_count(tokens: int | None) -> int:
    """Return the number that the server gives.

    It is 0 if the server gives none or an absurd one: a negative one would refill a budget.
    """
    return tokens if tokens is not None and 0 < tokens <= MOST_TOKENS else 0


def input_tokens(usage: object) -> int:
    """Return the tokens that a server counts for what it was sent, by the usage in its reply.

    It is 0 if that makes no sense.
    """
    return _token_count(_usage(usage).prompt_tokens)


def _text_of(message: _Message) -> str:
    text = message.content or ""
    if isinstance(text, list):  # some servers send the model's thoughts in parts of another type
        text = "".join(part.text or "" for part in text if part.type == "text")
    return text


def _call_as_json(call: _Call) -> str:
    """Write one call as JSON; arguments that are no JSON object stay unchanged, and parsing the reply rejects them."""
    name, arguments = call.function.name, call.function.arguments
    try:
        values: Any = decoded(arguments.strip() or "{}") if isinstance(arguments, str) else arguments or {}
        return json.dumps({"tool": name} | values | {"tool": name}, ensure_ascii=False)
    except (ValueError, TypeError):
        return f"{name} {arguments}"


def _without_surrogates(text: str) -> str:
    """Replace lone surrogates: they pass through JSON, but cannot be sent again or written to a file."""
    return text.encode(errors="replace").decode()
