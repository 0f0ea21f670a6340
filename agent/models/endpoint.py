"""One OpenAI-compatible endpoint: the form of requests that it takes, learned from its refusals once, and retries.

The client's own retries are switched off, because they have no limit on the whole time, log nothing that a user sees,
repeat a request that a spent quota refused, and do not repeat one that got an answer without a completion.
"""

from __future__ import annotations

import asyncio
import email.utils
import json
import logging
import math
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Literal, TypeVar, cast

from pydantic import BaseModel, ValidationError

from agent.core.reply_schema import Schema, strict_schema
from agent.models import provider_errors
from agent.models.role_config import Role, api_key
from agent.models.structured_output import (
    NEXT_RUNG,
    Completion,
    Rung,
    parse_completion,
    response_format,
    schema_request,
    tool_parameters,
)
from agent.prompts.render import Message, append_text

if TYPE_CHECKING:
    import openai
    from tenacity import RetryCallState

T = TypeVar("T")

MAX_TOKENS, MAX_COMPLETION_TOKENS = "max_tokens", "max_completion_tokens"
SEND_TIME_S = 0.002
"""A little longer than a request takes from its slot to the wire."""
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 30.0
JITTER_S = 0.5
DROPPABLE = (MAX_TOKENS, MAX_COMPLETION_TOKENS, "temperature", "seed", "parallel_tool_calls")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """A request for one completion, before it is written as the endpoint wants it."""

    messages: list[Message]
    reply: type[BaseModel]
    temperature: float
    form: Literal["json", "text", "tools"] = "json"
    tools: tuple[type[BaseModel], ...] = ()
    schema: Schema | None = None
    """That of the reply, bound by a request's inputs; None: that of its class."""

    @property
    def reply_schema(self) -> Schema:
        """The schema that a reply has to fit."""
        return strict_schema(self.reply) if self.schema is None else self.schema


class Endpoint:
    """Client of one role. Close it in the event loop that used it; then it may be used in another.

    Raises `KeyMissing` when it is made, not at the first request.
    """

    def __init__(self, role: Role) -> None:
        self.role = role
        self.rung: Rung = "json_schema"
        self.supports_tools = True
        self._key = api_key(role)
        self._dropped: set[str] = set()

    @cached_property
    def _client(self) -> openai.AsyncOpenAI:
        import openai

        role = self.role
        return openai.AsyncOpenAI(base_url=role.base_url, api_key=self._key, timeout=role.timeout_s, max_retries=0)

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
        async with self._slots:
            completion = await self._complete(request)
        if self._slots.locked():
            # The next request goes out before this reply is worked on, which holds up the event loop.
            await asyncio.sleep(SEND_TIME_S)
        return completion

    async def _complete(self, request: CompletionRequest) -> Completion:
        import openai

        while True:
            messages, parameters = self._messages(request), self._parameters(request)
            try:
                return await with_retries(self.role, partial(self._attempt, messages, parameters))
            except openai.APIStatusError as error:
                if not self._learn(error, parameters):
                    raise provider_errors.status_error(self.role, error, await self._model_names(error)) from error
            except openai.APIConnectionError as error:
                raise provider_errors.connection_error(self.role, error) from error

    async def _attempt(self, messages: list[Message], parameters: dict[str, object]) -> Completion:
        body = {"model": self.role.model, "messages": messages, **parameters}
        answer: object = None
        try:
            # Not `chat.completions.create`, which checks every part of every message: that doubles the time.
            answer = await self._client.post("/chat/completions", body=body, cast_to=object)
            return parse_completion(answer)  # it may be a page of text, or an error sent with status 200
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise provider_errors.no_completion(self.role, f"a broken text: {error}") from error
        except ValidationError as error:
            raise provider_errors.no_completion(self.role, answer) from error

    def _messages(self, request: CompletionRequest) -> list[Message]:
        if self.rung == "json_schema" or request.form == "text" or self._offers_tools(request):
            return request.messages
        return [append_text(request.messages[0], schema_request(request.reply_schema)), *request.messages[1:]]

    def _offers_tools(self, request: CompletionRequest) -> bool:
        return request.form == "tools" and self.supports_tools

    def _parameters(self, request: CompletionRequest) -> dict[str, object]:
        role = self.role
        second_name = role.max_tokens if MAX_TOKENS in self._dropped else None
        parameters: dict[str, object] = {
            MAX_TOKENS: role.max_tokens,
            MAX_COMPLETION_TOKENS: second_name,
            "temperature": request.temperature,
            "seed": role.seed,
        }
        if self._offers_tools(request):
            parameters |= tool_parameters(request.tools)
        elif request.form != "text":
            parameters["response_format"] = response_format(self.rung, request.reply.__name__, request.reply_schema)
        dropped = self._dropped
        sent = {name: value for name, value in parameters.items() if value is not None and name not in dropped}
        return {**sent, **role.extra}

    def _learn(self, error: openai.APIStatusError, sent: dict[str, object]) -> bool:
        """Leave out or rewrite what the server objects to, from now on; False if nothing can be changed."""
        form = sent.get("response_format")
        if isinstance(form, dict) and provider_errors.rejects_format(error):
            self._step_down(cast(Rung, form["type"]))
            return True
        name = provider_errors.rejected_parameter(error, [name for name in DROPPABLE if name in sent])
        own_tools = "tools" in self.role.extra
        if name is None and "tools" in sent and not own_tools and provider_errors.rejects_tools(error):
            self._do_without_tools()
            return True
        if name is None or name in self.role.extra:
            return False
        self._dropped.add(name)
        log.warning("%s at %s takes no %s; asking without", self.role.model, self.role.host, name)
        return True

    def _step_down(self, refused: Rung) -> None:
        if self.rung == refused:  # else another request was refused before
            self.rung = NEXT_RUNG[refused]
            role = self.role
            log.warning("%s at %s takes no %s; asking for %s", role.model, role.host, refused, self.rung)

    def _do_without_tools(self) -> None:
        if self.supports_tools:
            self.supports_tools = False
            log.warning("%s at %s takes no tools; asking for JSON", self.role.model, self.role.host)

    async def _model_names(self, error: openai.APIStatusError) -> list[str] | None:
        """Names of the server's models, if the refusal may be about the model and the server lists them."""
        import openai

        if not provider_errors.may_reject_model(error):
            return None
        try:
            listed: object = await self._client.get("/models", cast_to=object)
        except (openai.OpenAIError, json.JSONDecodeError):
            return None
        models = listed.get("data") if isinstance(listed, dict) else None
        return [str(model["id"]) for model in models if "id" in model] if isinstance(models, list) else None


async def with_retries(role: Role, attempt: Callable[[], Awaitable[T]]) -> T:
    """Await `attempt` until it succeeds; raise an error that does not pass, and the last one, unchanged.

    Waits grow exponentially with jitter, and are at least as long as the server's Retry-After. The attempts end after
    the role's `attempts`, or when the next one would begin later than `give_up_after_s`.
    """
    import tenacity

    retrying = tenacity.AsyncRetrying(
        retry=tenacity.retry_if_exception(provider_errors.is_transient),
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
        date = email.utils.parsedate_tz(header)
        wait_s = math.nan if date is None else email.utils.mktime_tz(date) - now_s
    return max(wait_s, 0.0) if math.isfinite(wait_s) else None


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
        error,
        state.attempt_number + 1,
        role.attempts,
        state.upcoming_sleep,
    )
