"""Refusals of a request for its length: codes first, then the words of each server, and the limit that they name.

Each row was recorded from a real server (tests/data/server_refusals.json has the bodies and where they were reported).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kinodex.index.nesting import values_within

TOO_LARGE = 413
CODES_DEPTH = 6
CODES = frozenset({"context_length_exceeded", "exceed_context_size_error"})
"""Values of `code` or `type` that say it, whatever the words: of OpenAI and Groq, and of llama.cpp."""


@dataclass(frozen=True, slots=True)
class LengthWords:
    """Words by which a server refuses a request for its length, and the limit beside them, as a pattern."""

    server: str
    words: str
    limit: str | None = None
    """None: the words do not name it."""


WORDINGS = (
    LengthWords("OpenAI, vLLM, DeepSeek", "context length", r"context length[^0-9]{0,20}(\d+)"),
    LengthWords("OpenAI, of GPT-5", "configured limit of", r"configured limit of (\d+)"),
    LengthWords("OpenAI, of GPT-5.2", "exceeds the context window"),
    LengthWords("OpenAI and Groq, of a minute's tokens", "request too large for", r"limit (\d+), requested"),
    LengthWords("Groq, Cerebras", "reduce the length of the messages", r"while limit is (\d+)"),
    LengthWords("vLLM, with pictures", "maximum model length", r"maximum model length of (\d+)"),
    LengthWords("Anthropic, the prompt alone", "prompt is too long", r"> (\d+) maximum"),
    LengthWords("Anthropic, with the reply", "exceed context limit", r"> (\d+)"),
    LengthWords("Gemini", "number of tokens allowed", r"tokens allowed[^0-9]{0,20}(\d+)"),
    LengthWords("xAI", "maximum prompt length", r"maximum prompt length is (\d+)"),
    LengthWords("llama.cpp", "context size", r'context size[^0-9]{0,20}(\d+)|"n_ctx": (\d+)'),
)
PASSING = "request too large for"
"""The one of them that comes with 429 too: a minute's tokens would not be enough however long one waits."""


def is_about_length(status: int, said: str, body: object, about_the_request: Iterable[int]) -> bool:
    """Return True of a refusal for length; `said` are its words in lower case, and 413 says it without any."""
    if status == 429:
        return PASSING in said
    if status not in {*about_the_request, TOO_LARGE}:
        return False
    return status == TOO_LARGE or bool(CODES & set(_codes(body))) or any(each.words in said for each in WORDINGS)


def limit_tokens(said: str, written: str) -> int | None:
    """Return the tokens that a model can hold, where a refusal names them, in its words or in a field of its JSON."""
    for each in WORDINGS:
        if (
            each.limit
            and each.words in said
            and (found := re.search(each.limit, said) or re.search(each.limit, written))
        ):
            return next(int(group) for group in found.groups() if group)
    return None


def _codes(body: object) -> Iterator[str]:
    for each in values_within(body, CODES_DEPTH):
        if isinstance(each, dict):
            yield from (str(each[name]) for name in ("code", "type") if each.get(name))
