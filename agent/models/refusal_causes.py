"""Causes of refusals: what a server objects to, read from its own words wherever in the body they stand.

Servers agree on no error codes, nor on a place for the reason: OpenAI has `error.message`, LM Studio a bare string,
FastAPI `detail`, and gateways nest the body of the server behind them as text. So the whole body is read, without
what it quotes of the request. All words stand in the tables of this module; tests hold a recorded body of a real
server for each (tests/data/server_refusals.json).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kinodex.agent.models.length_refusals import WORDINGS, is_about_length, limit_tokens
from kinodex.index.nesting import parse_json

if TYPE_CHECKING:
    import openai

INVALID_REQUEST = frozenset({400, 422})
ABOUT_THE_REQUEST = frozenset({*INVALID_REQUEST, 404, 413, 415, 500, 501})
"""Statuses of an objection to the request itself. Some servers report their own failure at what they do not know."""
NO_MONEY = ("insufficient_quota", "insufficient balance")
# A value over a limit names its parameter too, but leaving the parameter out would hide the mistake.
LIMIT_WORDS = ("too large", "too long", "too many", "at most", "less than", "context length", "maximum")
FORMAT_WORDS = (
    *("response_format", "json_schema", "json_object", "json schema"),
    *("grammar", "structured output", "response_schema"),
)
LENGTH_WORDS = ("maxlength", "repetition", "grammar")
"""Said of a schema whose texts have a greatest length."""
TOOL_WORDS = ("tool", "function")
NO_MODEL_WORDS = ("not found", "not exist", "unknown model", "invalid model", "not a valid model")
NO_IMAGE_WORDS = ("image input", "multimodal model", "unknown variant", "any variant", "be a string", "a string at")
"""Said of a request with pictures by a server or model that takes none."""
FEWER_IMAGES_WORDS = ("too many images", "at most", "single image", "limit-mm-per-prompt")
CONTEXT_WORDS = tuple(each.words for each in WORDINGS)
FILTER_WORDS = ("content_filter", "content management policy", "invalid_prompt", "data_inspection_failed")
QUOTED = frozenset({"input", "ctx", "url", "failed_generation", "user_id"})
"""Keys of values that are the request's own, or beside the point."""
SAYS_NOTHING = "provider returned error"
_COUNT = re.compile(r"(?:at most|max is|up to)\s+(\d+)|image=(\d+)")
_DEPTH = 6


def hidden_error(answer: object, url: str) -> openai.APIStatusError | None:
    """Return the refusal in a body that was sent with success: `{"error": {"code": 400, ...}}`; None if it is none."""
    import httpx2
    import openai

    error = answer.get("error") if isinstance(answer, Mapping) else None
    status = error.get("code") if isinstance(error, Mapping) else None
    if not isinstance(status, int) or not 400 <= status < 600:
        return None
    response = httpx2.Response(status, request=httpx2.Request("POST", url))
    return openai.APIStatusError(f"Error code: {status}", response=response, body=error)


def server_message(error: openai.APIStatusError) -> str:
    """Return the server's own words in one line, most telling first; empty for a web page, which says nothing."""
    body = error.body
    if isinstance(body, str) and body.lstrip().startswith("<"):
        return ""
    sayings = list(dict.fromkeys(each for each in _sayings(body) if each))
    telling = [each for each in sayings if each.lower() != SAYS_NOTHING] or sayings
    if telling:
        return "; ".join(telling)
    message = error.message.removeprefix(f"Error code: {error.status_code}").strip(" -")
    return message or (json.dumps(body, ensure_ascii=False) if body else "")


def _sayings(value: object, depth: int = _DEPTH) -> Iterator[str]:
    """Sentences in a body: messages, details, and those of a body that is nested as text."""
    if isinstance(value, str):
        nested = _nested(value)
        yield from [" ".join(value.split())] if nested is None or not depth else _sayings(nested, depth - 1)
    elif isinstance(value, list) and depth:
        for each in value:
            yield from _sayings(each, depth - 1)
    elif isinstance(value, Mapping) and depth:
        place = value.get("loc")
        where = f"{'.'.join(map(str, place))}: " if isinstance(place, list) else ""
        for key in ("message", "msg", "detail", "error", "errors", "raw", "metadata", "reason"):
            yield from (f"{where}{each}" for each in _sayings(value.get(key), depth - 1))


def _nested(text: str) -> object:
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        nested: object = parse_json(text)
    except ValueError:
        return None
    return nested


def all_words(error: openai.APIStatusError) -> str:
    """Return all texts of a refusal in lower case, codes and names of parameters too, but nothing that it quotes."""
    return " ".join([error.message, *_texts(error.body)]).lower()


def _texts(value: object, depth: int = _DEPTH) -> Iterator[str]:
    if isinstance(value, str):
        nested = _nested(value)
        yield from [value] if nested is None or not depth else _texts(nested, depth - 1)
    elif isinstance(value, list) and depth:
        for each in value:
            yield from _texts(each, depth - 1)
    elif isinstance(value, Mapping) and depth:
        for key, each in value.items():
            if key not in QUOTED:
                yield from _texts(each, depth - 1)


def _has(error: openai.APIStatusError, words: Sequence[str]) -> bool:
    said = all_words(error)
    return any(word in said for word in words)


def rejects_format(error: openai.APIStatusError) -> bool:
    return error.status_code in ABOUT_THE_REQUEST and _has(error, FORMAT_WORDS)


def rejects_text_limits(error: openai.APIStatusError) -> bool:
    return rejects_format(error) and _has(error, LENGTH_WORDS)


def rejected_parameter(error: openai.APIStatusError, parameters: Sequence[str]) -> str | None:
    """Return the one of `parameters` that the server does not know or support, if that is its objection."""
    if error.status_code not in {*INVALID_REQUEST, 500} or _has(error, LIMIT_WORDS) or is_context_spent(error):
        return None
    said = all_words(error)
    return error.param if error.param in parameters else next((name for name in parameters if name in said), None)


def rejects_reply_length(error: openai.APIStatusError) -> bool:
    names = ("max_tokens", "max_completion_tokens", "max_new_tokens")
    return error.status_code in INVALID_REQUEST and _has(error, names)


def rejects_tools(error: openai.APIStatusError) -> bool:
    return error.status_code in ABOUT_THE_REQUEST and _has(error, TOOL_WORDS)


def most_images(error: openai.APIStatusError, sent: int) -> int | None:
    """Return the most pictures that the server takes in a request, if it refuses one with `sent` pictures for their
    number.

    Half of them if it does not say how many. 0 if it takes none. None where it refuses the length: some servers speak
    of pictures then too.
    """
    if not sent or error.status_code not in ABOUT_THE_REQUEST or is_context_spent(error):
        return None
    said = all_words(error)
    if "image" in said and any(word in said for word in FEWER_IMAGES_WORDS):
        number = _COUNT.search(said)
        most = int(number[1] or number[2]) if number else 1 if "single image" in said else sent // 2
        return most if most < sent else None
    return 0 if any(word in said for word in NO_IMAGE_WORDS) else None


def is_context_spent(error: openai.APIStatusError) -> bool:
    return is_about_length(error.status_code, all_words(error), error.body, ABOUT_THE_REQUEST)


def context_limit(error: openai.APIStatusError) -> int | None:
    """Return the length of the model's context in tokens, where a refusal names it."""
    return limit_tokens(all_words(error), json.dumps(error.body))


def is_money_spent(error: openai.APIStatusError) -> bool:
    """Return True if the account has nothing left to pay with: waiting does not help."""
    return error.status_code == 402 or (error.status_code in (400, 403, 429) and _has(error, NO_MONEY))


def is_filtered(error: openai.APIStatusError) -> bool:
    return error.status_code in {*INVALID_REQUEST, 403} and _has(error, FILTER_WORDS)


def may_reject_model(error: openai.APIStatusError) -> bool:
    if error.status_code == 404 or error.param == "model" or error.code == "model_not_found":
        return True
    said = all_words(error)
    return error.status_code in INVALID_REQUEST and "model" in said and any(word in said for word in NO_MODEL_WORDS)
