"""One OpenAI-compatible endpoint: requests in the form that it accepts, and retries of what may pass.

The client's own retries are switched off, because they have no limit on the whole time, log nothing that a user sees,
repeat a request that a spent quota refused, and do not repeat one that got an answer without a completion.
"""

from __future__ import annotations

import asyncio
import email.utils
import json
import logging
import math
import os
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, TypeVar

from pydantic import ValidationError

from agent.core.work_clock import held
from agent.models import provider_errors, refusals
from agent.models.accepted_form import AcceptedForm, CompletionRequest
from agent.models.completion import Completion, parse_completion
from agent.models.contact_sheets import FittedMessages, count_pictures
from agent.models.role_config import Role, api_key
from index.redact import redact

if TYPE_CHECKING:
    import ssl

    import openai
    from tenacity import RetryCallState

    from agent.errors import ModelError

T = TypeVar("T")
Send = Callable[[dict[str, object]], Awaitable[object]]
"""Sends the body of a request for a completion and gives the server's answer to it, as JSON values."""

SEND_TIME_S = 0.002
"""A little longer than a request takes from its slot to the wire."""
FIRST_WAIT_S = 0.5
CONTEXT_NAMES = ("max_model_len", "context_length", "context_window", "max_context_length")
LONGEST_WAIT_S = 30.0
JITTER_S = 0.5

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Attempt:
    """A request as it is sent."""

    fitted: FittedMessages
    parameters: dict[str, object]


class Endpoint:
    """Client of one role. Close it in the event loop that used it; then it may be used in another.

    Raises `KeyMissing` when it is made, not at the first request.
    """

    def __init__(self, role: Role, send: Send | None = None) -> None:
        self.role = role
        self._send = send or self.post
        self.form = AcceptedForm(role)
        self._key = api_key(role)
        self._listed = False

    @cached_property
    def _client(self) -> openai.AsyncOpenAI:
        import openai

        role, http = self.role, openai.DefaultAsyncHttpxClient(verify=trusted_certificates())
        return openai.AsyncOpenAI(
            base_url=role.base_url, api_key=self._key, timeout=role.timeout_s, max_retries=0, http_client=http
        )

    @cached_property
    def _slots(self) -> asyncio.Semaphore:
        return asyncio.Semaphore(self.role.at_once)

    def open(self) -> None:
        """Load the client now, which takes a second, not while a first question waits."""
        self._client  # noqa: B018 - made at the first access

    async def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        client = self.__dict__.pop("_client", None)
        self.__dict__.pop("_slots", None)
        if client is not None:
            await client.close()

    async def complete(self, request: CompletionRequest) -> Completion:
        """Request one completion, written in the way that this endpoint accepts.

        Raises `ModelUnreachable`, `ModelRejected`, `ModelUnknown`.
        """
        async with held(self._slots):
            completion = await self._complete(request)
        if self._slots.locked():
            # The next request goes out before this reply is worked on, which holds up the event loop.
            await asyncio.sleep(SEND_TIME_S)
        return completion

    async def _complete(self, request: CompletionRequest) -> Completion:
        import openai

        while True:
            sent = Attempt(self.form.fit(request), self.form.parameters(request))
            try:
                completion = await with_retries(self.role, partial(self._attempt, sent), partial(self._is_final, sent))
                return replace(completion, sheets=sent.fitted.sheets, left_out=sent.fitted.left_out)
            except openai.APIStatusError as error:
                lesson = self.form.lesson(error, sent.parameters, sent.fitted.messages)
                if lesson is None:
                    raise await self._explain(error, sent) from error
                lesson()
            except openai.APIConnectionError as error:
                raise provider_errors.connection_error(self.role, error) from error

    async def post(self, body: dict[str, object]) -> object:
        """Post the body of a request for a completion once; gives the answer as JSON values."""
        # Not `chat.completions.create`, which checks every part of every message: that doubles the time.
        answer: object = await self._client.post("/chat/completions", body=body, cast_to=object)
        return answer

    async def _attempt(self, sent: Attempt) -> Completion:
        body = {"model": self.role.model, "messages": sent.fitted.messages, **sent.parameters}
        answer: object = None
        try:
            answer = await self._send(body)
            return parse_completion(answer)  # it may be a page of text, or an error sent with status 200
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise provider_errors.no_completion(self.role, f"a broken text: {error}") from error
        except ValidationError as error:
            raise refusals.hidden_error(answer, self.role.base_url) or provider_errors.no_completion(
                self.role, answer
            ) from error

    def _is_final(self, sent: Attempt, error: BaseException) -> bool:
        """True for a refusal of the request itself, whatever its status: some servers report those as their failure."""
        import openai

        if not isinstance(error, openai.APIStatusError):
            return False
        messages = sent.fitted.messages
        blind = refusals.most_images(error, count_pictures(messages)) == 0
        return blind or self.form.lesson(error, sent.parameters, messages) is not None

    async def find_context(self) -> int | None:
        """The tokens that the model can hold: what is known, else what the server lists; None if nobody says."""
        if self.form.context_tokens is None and not self._listed:
            self._listed = True
            limit = listed_context(await self._models(), self.role.model)
            if limit is not None:
                self.form.limit_context(limit)
        return self.form.context_tokens

    async def _explain(self, error: openai.APIStatusError, sent: Attempt) -> ModelError:
        pictures = count_pictures(sent.fitted.messages)
        return provider_errors.status_error(self.role, error, await self._model_names(error), pictures)

    async def _model_names(self, error: openai.APIStatusError) -> list[str] | None:
        """Names of the server's models, if the refusal may be about the model and the server lists them."""
        if not refusals.may_reject_model(error):
            return None
        models = await self._models()
        return None if models is None else [str(model["id"]) for model in models if "id" in model]

    async def _models(self) -> list[dict[str, object]] | None:
        """The models that the server lists, as it describes them; None if it lists none."""
        import openai

        try:
            listed: object = await self._client.get("/models", cast_to=object)
        except (openai.OpenAIError, json.JSONDecodeError):
            return None
        models = listed.get("data") if isinstance(listed, dict) else None
        return [model for model in models if isinstance(model, dict)] if isinstance(models, list) else None


def trusted_certificates() -> ssl.SSLContext:
    """Load the certificates that this machine trusts, once for all clients: that takes 40 ms of a processor."""
    return _load_certificates(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@lru_cache(maxsize=4)
def _load_certificates(file: str | None, folder: str | None) -> ssl.SSLContext:
    import httpx2

    return httpx2.create_ssl_context()  # it reads these two variables itself


def listed_context(models: Sequence[Mapping[str, object]] | None, model: str) -> int | None:
    """The length of a model's context in a server's list; vLLM, OpenRouter, Groq and Mistral call it differently."""
    for each in models or ():
        lengths = [each.get(name) for name in CONTEXT_NAMES] if each.get("id") == model else []
        known = [length for length in lengths if isinstance(length, int) and length > 0]
        if known:
            return known[0]
    return None


async def with_retries(
    role: Role, attempt: Callable[[], Awaitable[T]], is_final: Callable[[BaseException], bool] = lambda error: False
) -> T:
    """Await `attempt` until it succeeds; raise an error that does not pass, and the last one, unchanged.

    `is_final` is true for errors that look as if they would pass and do not.

    Waits grow exponentially with jitter, and are at least as long as the server's Retry-After. The attempts end after
    the role's `attempts`, or when the next one would begin later than `give_up_after_s`.
    """
    import tenacity

    retrying = tenacity.AsyncRetrying(
        retry=tenacity.retry_if_exception(lambda error: provider_errors.is_transient(error) and not is_final(error)),
        wait=_wait_s,
        stop=tenacity.stop_after_attempt(role.attempts) | tenacity.stop_before_delay(role.give_up_after_s),
        before_sleep=lambda state: _warn(role, state),
        reraise=True,
    )
    return await retrying(attempt)


def retry_after_s(header: str | None, now_s: float) -> float | None:
    """Seconds to wait that a Retry-After header gives as a number or a date; None if it gives neither."""
    try:
        wait_s = float(header or "")
    except ValueError:
        wait_s = _date_s(header or "") - now_s
    return max(wait_s, 0.0) if math.isfinite(wait_s) else None


def _date_s(header: str) -> float:
    """The time of a date as mails have it, in seconds; not a number for what is none, such as the year 99999."""
    try:
        date = email.utils.parsedate_tz(header)
        return math.nan if date is None else float(email.utils.mktime_tz(date))
    except (ValueError, OverflowError):
        return math.nan


def _wait_s(state: RetryCallState) -> float:
    import openai

    error = state.outcome.exception() if state.outcome else None
    header = error.response.headers.get("retry-after") if isinstance(error, openai.APIStatusError) else None
    requested_s = retry_after_s(header, time.time())
    jitter_s = random.uniform(0.0, JITTER_S)
    if requested_s is not None:
        return requested_s + jitter_s
    return min(FIRST_WAIT_S * 2.0 ** (state.attempt_number - 1), LONGEST_WAIT_S) + jitter_s


def _warn(role: Role, state: RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome else None
    log.warning(
        "%s at %s: %s; attempt %d of %d in %.1f s",
        role.model,
        role.host,
        redact(str(error), role.secrets),
        state.attempt_number + 1,
        role.attempts,
        state.upcoming_sleep,
    )
