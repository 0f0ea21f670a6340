"""Errors of endpoints for the user: one clear line with the server's own words, and advice that fits the cause."""

from __future__ import annotations

import difflib
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kinodex.agent.errors import (
    AllRejected,
    ContextSpent,
    ModelError,
    ModelRejected,
    ModelUnknown,
    ModelUnreachable,
    NoCompletion,
    ReplyRefused,
    TakesNoPictures,
)
from kinodex.agent.models.length_refusals import WORDINGS, is_about_length, limit_tokens
from kinodex.agent.models.roles import Role
from kinodex.agent.models.waits import asked_wait_s
from kinodex.index.nesting import parse_json
from kinodex.redaction import redact

if TYPE_CHECKING:
    import openai

TRANSIENT = frozenset({408, 409, 429})
CLIPPED_CHARACTERS = 300
NEAREST = 5
COMPLETIONS = "chat completions"
"""What a server is asked for, unless it is something else."""
READERS = "`kinodex agents` says which agents read text alone"


def clip(value: object, role: Role) -> str:
    """Any text in one line of a readable length; a server may quote the role's secrets in its own."""
    line = " ".join(redact(str(value), role.secrets).split())
    return line if len(line) <= CLIPPED_CHARACTERS else line[: CLIPPED_CHARACTERS - 1] + "…"


def is_transient(error: BaseException) -> bool:
    """True for an error of the client that may be gone at the next attempt."""
    import openai

    if isinstance(error, openai.APIStatusError):
        passes = error.status_code in TRANSIENT or error.status_code >= 500
        return passes and not is_money_spent(error) and not is_context_spent(error)
    is_known = isinstance(error.__cause__, ReplyRefused)
    return isinstance(error, (openai.APIConnectionError, NoCompletion)) and not is_known


def asked_wait_of(error: BaseException | None) -> float | None:
    """Seconds that a refusal asks to wait before the next try; None if it does not say."""
    import openai

    if not isinstance(error, openai.APIStatusError):
        return None
    return asked_wait_s(error.status_code, error.response.headers, error.body, time.time())


def is_refused(error: BaseException | None) -> bool:
    """True for an error of a connection that was refused: nothing listens there."""
    while error is not None and not isinstance(error, ConnectionRefusedError):
        error = error.__cause__ or error.__context__
    return error is not None


def status_error(
    role: Role, error: openai.APIStatusError, models: Sequence[str] | None, images: int = 0, offer: str = COMPLETIONS
) -> ModelError:
    """Explain a refusal, or a failure that did not pass, in one line; `offer` is what the server was asked for.

    `models` are those that the server lists, if it was asked; `images` is the number of pictures that were sent.
    """
    host, model, status = role.host, role.model, error.status_code
    message = clip(f"{status}: {server_message(error)}", role).rstrip(": ")
    if is_money_spent(error):
        account = f"the account of {role.key_env}" if role.key_env else "the account"
        return AllRejected(f"{host} wants to be paid ({message}); add credit to {account}, or use another key")
    if status in (401, 403) and not is_filtered(error):
        credentials = f"the key in {role.key_env}" if role.key_env else "a request without a key"
        kind = AllRejected if status == 401 else ModelRejected  # 403: some gateways use it for content
        return kind(f"{host} refuses {credentials} ({message}); check the key and what it may use")
    if models is not None and model not in models:
        return ModelUnknown(f"{host} has no model {model!r}; {_suggest(model, models)}")
    return _content_error(role, error, message, images) or _other_error(role, error, message, offer)


def _content_error(role: Role, error: openai.APIStatusError, message: str, images: int) -> ModelError | None:
    """Explain what the server objects to in the request's content: its filter, its length, its pictures."""
    host, model = role.host, role.model
    if is_filtered(error):
        return ModelRejected(f"a filter at {host} refuses this request ({message}); others may pass, or another model")
    if is_context_spent(error):
        todo = f"lower the role's max_tokens ({role.max_tokens}) or image_side_px ({role.image_side_px}), show fewer"
        todo += " frames (`kinodex agents` lists the parameters), or serve the model with a longer context"
        what = f"the request and its reply are longer than {model!r} at {host} can hold ({message}); {todo}"
        return ContextSpent(what, context_limit(error))
    return takes_no_pictures(role, message) if most_images(error, images) == 0 else None


def takes_no_pictures(role: Role, said: str) -> TakesNoPictures:
    """Explain that a model takes no pictures, with what says so."""
    todo = f"give the roles that see a model with vision, or ask an agent that reads: {READERS}"
    return TakesNoPictures(f"{role.model!r} at {role.host} takes no pictures ({said})", todo)


def _other_error(role: Role, error: openai.APIStatusError, message: str, offer: str) -> ModelError:
    host, model, said = role.host, role.model, all_words(error)
    if error.status_code == 404 and "model" not in said:
        return AllRejected(f"{role.place} offers no {offer} ({message}); it usually ends in /v1")
    if error.status_code == 404:
        return ModelUnknown(f"{host} makes no {offer} with model {model!r} ({message}); choose another one")
    if is_transient(error):
        tried = f"{role.attempts} attempts and {role.give_up_after_s:g} s"
        todo = "lower the role's at_once, or try later" if error.status_code == 429 else "look at its log, or try later"
        if (wait_s := asked_wait_of(error)) is not None and wait_s > role.give_up_after_s:
            todo = f"it asks for a wait of {wait_s:,.0f} s: raise the role's give_up_after_s, or try later"
        return ModelUnreachable(f"{host} fails ({message}), for up to {tried}; {todo}")
    own = sorted(name for name in role.extra if name.lower() in said)
    named = [name for name in ("max_tokens", "temperature", "seed") if name in said]
    todo = "its log may say more: kinodex has no setting for this"
    if own or named:
        names = ", ".join(own or named)
        todo = f"take {names} out of the role's extra" if own else f"change the role's {names}"
    return ModelRejected(f"{host} refuses the request to {model!r} ({message}); {todo}")


def _suggest(name: str, models: Sequence[str]) -> str:
    if not models:
        return "it lists none; load one there"
    folded = {model.casefold(): model for model in models}
    close = difflib.get_close_matches(name.casefold(), folded, n=NEAREST, cutoff=0.4)
    offered = ", ".join([folded[each] for each in close] or sorted(models)[:NEAREST])
    return f"the nearest of the {len(models)} it lists: {offered}; set the role's model to one of them"


def connection_error(role: Role, error: openai.APIConnectionError) -> ModelError:
    """Explain that no server answered, or not in time, or in a way that is not read."""
    import openai

    if isinstance(error.__cause__, ReplyRefused):
        return error.__cause__

    if isinstance(error, openai.APITimeoutError):
        tried = f"within {role.timeout_s:g} s, tried up to {role.attempts} times"
        return ModelUnreachable(f"no reply from {role.place} {tried}; raise timeout_s or lower at_once")
    cause = clip(error.__cause__ or error, role)
    return ModelUnreachable(f"nobody answers at {role.place} ({cause}); start the server or correct base_url")


def no_embedding(role: Role, body: object) -> NoCompletion:
    """Explain that a server answered with success, but not with one vector."""
    return NoCompletion(
        f"{role.place} sent no vector but {clip(body, role)}; give a server that embeds messages with pictures, as "
        "vLLM does (`vllm serve MODEL --runner pooling`)"
    )


def other_dimensions(role: Role, given: int, expected: int) -> NoCompletion:
    """Explain that a server makes vectors of another length than before."""
    return NoCompletion(
        f"{role.place} sent a vector of {given} dimensions, and those of {role.model} before it have {expected}; serve "
        "one model there"
    )


def no_completion(role: Role, body: object) -> NoCompletion:
    """Explain that a server answered with success, but not with a chat completion."""
    return NoCompletion(f"{role.place} sent no chat completion but {clip(body, role)}; it usually ends in /v1")


# Causes of refusals: what a server objects to, read from its own words wherever in the body they stand.
#
# Servers agree on no error codes, nor on a place for the reason: OpenAI has `error.message`, LM Studio a bare string,
# FastAPI `detail`, and gateways nest the body of the server behind them as text. So the whole body is read, without
# what it quotes of the request. All words stand in the tables of this module; tests hold a recorded body of a real
# server for each (tests/data/server_refusals.json).

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
TOOL_WORDS = ("tool", "function")
NO_MODEL_WORDS = ("not found", "not exist", "unknown model", "invalid model", "not a valid model")
NO_IMAGE_WORDS = ("image input", "multimodal model", "unknown variant", "any variant", "be a string", "a string at")
"""Said of a request with pictures by a server or model that takes none."""
FEWER_IMAGES_WORDS = ("too many images", "at most", "single image", "limit-mm-per-prompt")
CONTEXT_WORDS = tuple(each.words for each in WORDINGS)
FILTER_WORDS = ("content_filter", "content management policy")
QUOTED = frozenset({"input", "ctx", "url", "failed_generation", "user_id"})
"""Keys of values that are the request's own, or beside the point."""
SAYS_NOTHING = "provider returned error"
_COUNT = re.compile(r"(?:at most|max is|up to)\s+(\d+)|image=(\d+)")
_DEPTH = 6


def hidden_error(answer: object, url: str) -> openai.APIStatusError | None:
    """The refusal in a body that was sent with success: `{"error": {"code": 400, ...}}`; None if it is none."""
    import httpx2
    import openai

    error = answer.get("error") if isinstance(answer, Mapping) else None
    status = error.get("code") if isinstance(error, Mapping) else None
    if not isinstance(status, int) or not 400 <= status < 600:
        return None
    response = httpx2.Response(status, request=httpx2.Request("POST", url))
    return openai.APIStatusError(f"Error code: {status}", response=response, body=error)


def server_message(error: openai.APIStatusError) -> str:
    """The server's own words in one line, most telling first; empty for a web page, which says nothing."""
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
    """All texts of a refusal in lower case, codes and names of parameters too, but nothing that it quotes."""
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


def rejected_parameter(error: openai.APIStatusError, parameters: Sequence[str]) -> str | None:
    """The one of `parameters` that the server does not know or support, if that is its objection."""
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
    """The most pictures that the server takes in a request, if it refuses one with `sent` pictures for their number.

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
    """The length of the model's context in tokens, where a refusal names it."""
    return limit_tokens(all_words(error), json.dumps(error.body))


def is_money_spent(error: openai.APIStatusError) -> bool:
    """True if the account has nothing left to pay with: waiting does not help."""
    return error.status_code == 402 or (error.status_code in (400, 403, 429) and _has(error, NO_MONEY))


def is_filtered(error: openai.APIStatusError) -> bool:
    return error.status_code in {*INVALID_REQUEST, 403} and _has(error, FILTER_WORDS)


def may_reject_model(error: openai.APIStatusError) -> bool:
    if error.status_code == 404 or error.param == "model" or error.code == "model_not_found":
        return True
    said = all_words(error)
    return error.status_code in INVALID_REQUEST and "model" in said and any(word in said for word in NO_MODEL_WORDS)
