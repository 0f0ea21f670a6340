"""Errors of endpoints for the user: one clear line with the server's own words, and advice that fits the cause.

`refusals` reads the cause from the server's words; here it becomes an error of the agent's.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent.errors import (
    AllRejected,
    ContextSpent,
    ModelError,
    ModelRejected,
    ModelUnknown,
    ModelUnreachable,
    NoCompletion,
)
from agent.models import refusals
from agent.models.role_config import Role
from index.redact import redact

if TYPE_CHECKING:
    import openai

TRANSIENT = frozenset({408, 409, 429})
CLIPPED_CHARACTERS = 300
NEAREST = 5
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
        return passes and not refusals.is_money_spent(error) and not refusals.is_context_spent(error)
    return isinstance(error, (openai.APIConnectionError, NoCompletion))


def status_error(role: Role, error: openai.APIStatusError, models: Sequence[str] | None, images: int = 0) -> ModelError:
    """Explain a refusal, or a failure that did not pass, in one line.

    `models` are those that the server lists, if it was asked; `images` is the number of pictures that were sent.
    """
    host, model, status = role.host, role.model, error.status_code
    message = clip(f"{status}: {refusals.server_message(error)}", role).rstrip(": ")
    if refusals.is_money_spent(error):
        account = f"the account of {role.key_env}" if role.key_env else "the account"
        return AllRejected(f"{host} wants to be paid ({message}); add credit to {account}, or use another key")
    if status in (401, 403) and not refusals.is_filtered(error):
        credentials = f"the key in {role.key_env}" if role.key_env else "a request without a key"
        kind = AllRejected if status == 401 else ModelRejected  # 403: some gateways use it for content
        return kind(f"{host} refuses {credentials} ({message}); check the key and what it may use")
    if models is not None and model not in models:
        return ModelUnknown(f"{host} has no model {model!r}; {_suggest(model, models)}")
    return _content_error(role, error, message, images) or _other_error(role, error, message)


def _content_error(role: Role, error: openai.APIStatusError, message: str, images: int) -> ModelError | None:
    """Explain what the server objects to in the request's content: its filter, its pictures, its length."""
    host, model = role.host, role.model
    if refusals.is_filtered(error):
        return ModelRejected(f"a filter at {host} refuses this request ({message}); others may pass, or another model")
    if refusals.most_images(error, images) == 0:
        todo = f"give the roles that see a model with vision, or ask an agent that reads: {READERS}"
        return ModelRejected(f"{model!r} at {host} takes no pictures ({message}); {todo}")
    if refusals.is_context_spent(error):
        todo = f"lower the role's max_tokens ({role.max_tokens}) or image_side_px ({role.image_side_px}), show fewer"
        todo += " frames (`kinodex agents` lists the parameters), or serve the model with a longer context"
        what = f"the request and its reply are longer than {model!r} at {host} can hold ({message}); {todo}"
        return ContextSpent(what, refusals.context_limit(error))
    if error.status_code == 413:
        return ModelRejected(f"{host} finds the request too large ({message}); lower the role's image_side_px")
    return None


def _other_error(role: Role, error: openai.APIStatusError, message: str) -> ModelError:
    host, model, said = role.host, role.model, refusals.all_words(error)
    if error.status_code == 404 and "model" not in said:
        return AllRejected(f"{role.place} offers no chat completions ({message}); it usually ends in /v1")
    if error.status_code == 404:
        return ModelUnknown(f"{host} does not chat with model {model!r} ({message}); choose another one")
    if is_transient(error):
        tried = f"{role.attempts} attempts and {role.give_up_after_s:g} s"
        todo = "lower the role's at_once, or try later" if error.status_code == 429 else "look at its log, or try later"
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


def connection_error(role: Role, error: openai.APIConnectionError) -> ModelUnreachable:
    """Explain that no server answered, or not in time."""
    import openai

    if isinstance(error, openai.APITimeoutError):
        tried = f"within {role.timeout_s:g} s, tried up to {role.attempts} times"
        return ModelUnreachable(f"no reply from {role.place} {tried}; raise timeout_s or lower at_once")
    cause = clip(error.__cause__ or error, role)
    return ModelUnreachable(f"nobody answers at {role.place} ({cause}); start the server or correct base_url")


def no_completion(role: Role, body: object) -> NoCompletion:
    """Explain that a server answered with success, but not with a chat completion."""
    return NoCompletion(f"{role.place} sent no chat completion but {clip(body, role)}; it usually ends in /v1")
