"""Errors of endpoints for the user: one clear line with the server's own words, and advice that fits the cause."""

from __future__ import annotations

import difflib
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kinodex.agent.errors import (
    AllRejected,
    ContextSpent,
    Filtered,
    ModelError,
    ModelRejected,
    ModelUnknown,
    ModelUnreachable,
    NoCompletion,
    ReplyRefused,
    TakesNoPictures,
)
from kinodex.agent.models.refusal_causes import (
    all_words,
    context_limit,
    is_context_spent,
    is_filtered,
    is_money_spent,
    most_images,
    server_message,
)
from kinodex.agent.models.roles import Role
from kinodex.agent.models.waits import asked_wait_s
from kinodex.redaction import redact

if TYPE_CHECKING:
    import openai

TRANSIENT = frozenset({408, 409, 429})
CLIPPED_CHARACTERS = 300
READ_CHARACTERS = 100_000
"""Of a text that is clipped: a server may send megabytes, and to look for secrets in all of them takes seconds."""
NEAREST = 5
COMPLETIONS = "chat completions"
"""What a server is asked for, unless it is something else."""
READERS = "`kinodex agents` says which agents read only text"


def clip(value: object, role: Role) -> str:
    """Any text in one line of a readable length; a server may quote the role's secrets in its own."""
    whole = str(value)
    if len(whole) > READ_CHARACTERS:
        begin = whole[:READ_CHARACTERS]
        *_, last = begin.rsplit(maxsplit=1) or [""]
        whole = begin.removesuffix(last) or begin  # without the word that the cut goes through
    line = " ".join(redact(whole, role.secrets).split())
    return line if len(line) <= CLIPPED_CHARACTERS else line[: CLIPPED_CHARACTERS - 1] + "…"


def is_transient(error: BaseException) -> bool:
    """Return True for an error of the client that may be gone at the next attempt."""
    import openai

    if isinstance(error, openai.APIStatusError):
        passes = error.status_code in TRANSIENT or error.status_code >= 500
        return passes and not is_money_spent(error) and not is_context_spent(error)
    is_known = isinstance(error.__cause__, ReplyRefused)
    return isinstance(error, (openai.APIConnectionError, NoCompletion)) and not is_known


def is_timeout(error: BaseException | None) -> bool:
    """Return True for an error of the client that a reply did not come in time."""
    import openai

    return isinstance(error, openai.APITimeoutError)


def is_busy(error: BaseException) -> bool:
    """Return True for the refusal of one request too many."""
    import openai

    return isinstance(error, openai.APIStatusError) and error.status_code == 429


def asked_wait_of(error: BaseException | None) -> float | None:
    """Seconds that a refusal asks to wait before the next try; None if it does not say."""
    import openai

    if not isinstance(error, openai.APIStatusError):
        return None
    return asked_wait_s(error.status_code, error.response.headers, error.body, time.time())


def is_refused(error: BaseException | None) -> bool:
    """Return True for an error of a connection that was refused: nothing listens there."""
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
        return Filtered(f"a filter at {host} refuses this request ({message}); others may pass, or another model")
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
        twice = "" if role.attempts == 1 else f", nor within {2 * role.timeout_s:g} s"
        todo = "raise the role's timeout_s, or ask a faster server"
        return ModelUnreachable(f"no reply from {role.place} within {role.timeout_s:g} s{twice}; {todo}")
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
