"""Errors of endpoints: which of them pass, what a server objects to, and one clear line for the user.

Servers agree on no error codes, so some of this is read from the words of their messages. All such words stand in the
tables of this module; tests hold a recorded body of a real server for each (tests/data/server_refusals.json).
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent.errors import AllRejected, ModelError, ModelRejected, ModelUnknown, ModelUnreachable, NoCompletion
from agent.models.role_config import Role

if TYPE_CHECKING:
    import openai

TRANSIENT = frozenset({408, 409, 429})
INVALID_REQUEST = (400, 422)
NO_MONEY = "insufficient_quota"
# A value over a limit names its parameter too, but leaving the parameter out would hide the mistake.
LIMIT_WORDS = ("too large", "too long", "too many", "at most", "less than", "context length", "maximum")
FORMAT_WORDS = ("response_format", "json_schema", "json_object", "json schema", "grammar", "structured output")
TOOL_WORDS = ("tool", "function")
NO_MODEL_WORDS = ("not found", "not exist", "unknown model", "invalid model", "not a valid model")
CLIPPED_CHARACTERS = 300
NEAREST = 5


def clip(value: object) -> str:
    """Any text in one line of a readable length."""
    line = " ".join(str(value).split())
    return line if len(line) <= CLIPPED_CHARACTERS else line[: CLIPPED_CHARACTERS - 1] + "…"


def is_transient(error: BaseException) -> bool:
    """True for an error of the client that may be gone at the next attempt."""
    import openai

    if isinstance(error, openai.APIStatusError):
        return error.code != NO_MONEY and (error.status_code in TRANSIENT or error.status_code >= 500)
    return isinstance(error, (openai.APIConnectionError, NoCompletion))


def rejects_format(error: openai.APIStatusError) -> bool:
    """True if the server objects to the form in which the reply was requested."""
    return error.status_code in INVALID_REQUEST and _has_word(error, FORMAT_WORDS)


def rejected_parameter(error: openai.APIStatusError, parameters: Sequence[str]) -> str | None:
    """The one of `parameters` that the server does not know or support, if that is its objection."""
    if error.status_code not in INVALID_REQUEST or _has_word(error, LIMIT_WORDS):
        return None
    message = _message(error)
    return error.param if error.param in parameters else next((name for name in parameters if name in message), None)


def rejects_tools(error: openai.APIStatusError) -> bool:
    """True if the server objects to tools. The status does not matter: some report their own failure (500, 501)."""
    return _has_word(error, TOOL_WORDS)


def may_reject_model(error: openai.APIStatusError) -> bool:
    """True if the server may not have the model."""
    if error.status_code == 404 or error.param == "model" or error.code == "model_not_found":
        return True
    return error.status_code in INVALID_REQUEST and "model" in _message(error) and _has_word(error, NO_MODEL_WORDS)


def _has_word(error: openai.APIStatusError, words: Sequence[str]) -> bool:
    message = _message(error)
    return any(word in message for word in words)


def _message(error: openai.APIStatusError) -> str:
    return f"{error.param or ''} {_server_message(error)}".lower()


def _server_message(error: openai.APIStatusError) -> str:
    """The server's own words; of a body in another form than OpenAI's, the body.

    The client gives the field `error.message` alone. LM Studio sends `{"error": "..."}`, FastAPI `{"detail": [...]}`.
    """
    message = error.message.removeprefix(f"Error code: {error.status_code}").strip(" -")
    if message or error.body is None:
        return message
    body = error.body if isinstance(error.body, str) else json.dumps(error.body, ensure_ascii=False)
    return "" if body.lstrip().startswith("<") else body  # a web page says nothing of the request


def status_error(role: Role, error: openai.APIStatusError, models: Sequence[str] | None) -> ModelError:
    """Explain a refusal, or a failure that did not pass, in one line.

    `models` are those that the server lists, if it was asked.
    """
    host, model, status = role.host, role.model, error.status_code
    message = clip(f"{status}: {_server_message(error)}").rstrip(": ")
    if status in (401, 403):
        credentials = f"the key in {role.key_env}" if role.key_env else "a request without a key"
        kind = AllRejected if status == 401 else ModelRejected  # 403: some gateways use it for content
        return kind(f"{host} refuses {credentials} ({message}); check the key and what it may use")
    if models is not None and model not in models:
        return ModelUnknown(f"{host} has no model {model!r}; {_suggest(model, models)}")
    if status == 404 and "model" not in _message(error):
        return AllRejected(f"{role.base_url} offers no chat completions ({message}); it usually ends in /v1")
    if status == 404:
        return ModelUnknown(f"{host} does not chat with model {model!r} ({message}); choose another one")
    if status == 413:
        return ModelRejected(f"{host} finds the request too large ({message}); lower the role's image_side_px")
    if is_transient(error):
        tried = f"{role.attempts} attempts and {role.give_up_after_s:g} s"
        return ModelUnreachable(f"{host} fails ({message}), for up to {tried}; try later or lower at_once")
    return ModelRejected(f"{host} refuses the request to {model!r} ({message}); change the role's settings")


def _suggest(name: str, models: Sequence[str]) -> str:
    if not models:
        return "it lists none; load one there"
    folded = {model.casefold(): model for model in models}
    close = difflib.get_close_matches(name.casefold(), folded, n=NEAREST, cutoff=0.4)
    offered = ", ".join([folded[each] for each in close] or sorted(models)[:NEAREST])
    return f"the nearest of the {len(models)} it lists: {offered}; set the role's model to one of them"


def connection_error(role: Role, error: openai.APIConnectionError) -> ModelUnreachable:
    """Explain that no server answered, or not in time."""
    import openai

    if isinstance(error, openai.APITimeoutError):
        tried = f"within {role.timeout_s:g} s, tried up to {role.attempts} times"
        return ModelUnreachable(f"no reply from {role.base_url} {tried}; raise timeout_s or lower at_once")
    cause = clip(error.__cause__ or error)
    return ModelUnreachable(f"nobody answers at {role.base_url} ({cause}); start the server or correct base_url")


def no_completion(role: Role, body: object) -> NoCompletion:
    """Explain that a server answered with success, but not with a chat completion."""
    return NoCompletion(f"{role.base_url} sent no chat completion but {clip(body)}; it usually ends in /v1")
