"""What servers mean when they refuse: which words name what, and one clear line for the user."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent.errors import AllRejected, ModelError, ModelRejected, ModelUnknown, ModelUnreachable, NoCompletion
from agent.models.retries import passes
from agent.models.role_config import Role

if TYPE_CHECKING:
    import openai

# A value over a limit names its parameter too, but leaving the parameter out would hide the mistake.
LIMITS = ("too large", "too long", "too many", "at most", "less than", "context length", "maximum")
FORMATS = ("response_format", "json_schema", "json_object", "json schema", "grammar", "structured output")
TOOLS = ("tool", "function")
NO_MODEL = ("not found", "not exist", "unknown model", "invalid model", "not a valid model")
WRITTEN_WRONG = (400, 422)
CLIPPED_CHARACTERS = 300
NEAREST = 5


def clipped(value: object) -> str:
    """Any text in one line of a readable length."""
    line = " ".join(str(value).split())
    return line if len(line) <= CLIPPED_CHARACTERS else line[: CLIPPED_CHARACTERS - 1] + "…"


def names_format(error: openai.APIStatusError) -> bool:
    """Whether the server objects to the form in which the reply was asked for."""
    return error.status_code in WRITTEN_WRONG and any(word in _said(error) for word in FORMATS)


def named_parameter(error: openai.APIStatusError, parameters: Sequence[str]) -> str | None:
    """The one of `parameters` that the server does not know or support, if that is its objection."""
    said = _said(error)
    if error.status_code not in WRITTEN_WRONG or any(word in said for word in LIMITS):
        return None
    return error.param if error.param in parameters else next((name for name in parameters if name in said), None)


def names_tools(error: openai.APIStatusError) -> bool:
    """Whether the server objects to tools. Whatever the status: some take it for their own failure (500, 501)."""
    return any(word in _said(error) for word in TOOLS)


def may_name_model(error: openai.APIStatusError) -> bool:
    if error.status_code == 404 or error.param == "model" or error.code == "model_not_found":
        return True
    said = _said(error)
    return error.status_code in WRITTEN_WRONG and "model" in said and any(word in said for word in NO_MODEL)


def _said(error: openai.APIStatusError) -> str:
    return f"{error.param or ''} {error.message}".lower()


def explained(role: Role, error: openai.APIStatusError, models: Sequence[str] | None) -> ModelError:
    """A refusal, or a failure that did not pass, in one line; `models` is what the server lists, if asked."""
    host, model, status = role.host, role.model, error.status_code
    said = clipped(f"{status}: {error.message.removeprefix(f'Error code: {status}').strip(' -')}").rstrip(": ")
    if status in (401, 403):
        held = f"the key in {role.key_env}" if role.key_env else "a request without a key"
        kind = AllRejected if status == 401 else ModelRejected  # 403: some gateways say so of content
        return kind(f"{host} refuses {held} ({said}); check the key and what it may use")
    if models is not None and model not in models:
        return ModelUnknown(f"{host} has no model {model!r}; {_offer(model, models)}")
    if status == 404 and "model" not in _said(error):
        return AllRejected(f"{role.base_url} offers no chat completions ({said}); it usually ends in /v1")
    if status == 404:
        return ModelUnknown(f"{host} does not chat with model {model!r} ({said}); choose another one")
    if status == 413:
        return ModelRejected(f"{host} finds the request too large ({said}); lower the role's image_side_px")
    if passes(error):
        tried = f"{role.attempts} attempts and {role.give_up_after_s:g} s"
        return ModelUnreachable(f"{host} fails ({said}), for up to {tried}; try later or lower at_once")
    return ModelRejected(f"{host} refuses the request to {model!r} ({said}); change the role's settings")


def _offer(name: str, models: Sequence[str]) -> str:
    if not models:
        return "it lists none; load one there"
    folded = {model.casefold(): model for model in models}
    close = difflib.get_close_matches(name.casefold(), folded, n=NEAREST, cutoff=0.4)
    offered = ", ".join([folded[each] for each in close] or sorted(models)[:NEAREST])
    return f"the nearest of the {len(models)} it lists: {offered}; set the role's model to one of them"


def unreachable(role: Role, error: openai.APIConnectionError) -> ModelUnreachable:
    """Nobody answered, or not in time."""
    import openai

    if isinstance(error, openai.APITimeoutError):
        tried = f"within {role.timeout_s:g} s, tried up to {role.attempts} times"
        return ModelUnreachable(f"no reply from {role.base_url} {tried}; raise timeout_s or lower at_once")
    cause = clipped(error.__cause__ or error)
    return ModelUnreachable(f"nobody answers at {role.base_url} ({cause}); start the server or correct base_url")


def no_completion(role: Role, got: object) -> NoCompletion:
    """Somebody answered, but not as chat completions do."""
    sent = clipped(got)
    return NoCompletion(f"{role.base_url} sent no chat completion but {sent}; it usually ends in /v1")
