"""One OpenAI-compatible endpoint: requests in the form that it accepts, and its lists of models."""

from __future__ import annotations

import asyncio
import json
import math
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field, FiniteFloat, ValidationError, field_validator

from kinodex.agent.errors import ModelError
from kinodex.agent.models import provider_errors, refusal_causes
from kinodex.agent.models.accepted_form import AcceptedForm, CompletionRequest
from kinodex.agent.models.completion import Completion, input_tokens, parse_completion
from kinodex.agent.models.contact_sheets import FittedMessages, count_pictures
from kinodex.agent.models.retries import with_retries
from kinodex.agent.models.roles import Role, api_key, is_private
from kinodex.agent.models.server_settings import ServerSettings, listed_context, of_llama_cpp, of_ollama
from kinodex.agent.models.slots import Slots, slots_at
from kinodex.agent.replies.thoughts import is_thinking
from kinodex.index.spaces.fingerprint import MOST_DIMENSIONS

if TYPE_CHECKING:
    import ssl

    import openai

Send = Callable[[dict[str, object]], Awaitable[object]]
"""Sends the body of a request for a completion and gives the server's answer to it, as JSON values."""
SEND_TIME_S = 0.002
"""A little longer than a request takes from its slot to the wire."""

LISTING_S = 10.0


@dataclass(frozen=True, slots=True)
class Attempt:
    """A request as it is sent."""

    fitted: FittedMessages
    parameters: dict[str, object]


class _Vector(BaseModel):
    embedding: list[FiniteFloat] = Field(min_length=1, max_length=MOST_DIMENSIONS)

    @field_validator("embedding")
    @classmethod
    def _check_length(cls, numbers: list[float]) -> list[float]:
        """Refuse a vector without a length, or with one that overflows: it has no unit vector."""
        if not 0 < sum(each * each for each in numbers) < math.inf:
            raise ValueError("has no direction")
        return numbers


class Embedded(BaseModel):
    """A reply of `/embeddings`: one vector, and the tokens of what it was made of."""

    data: list[_Vector] = Field(min_length=1, max_length=1)
    usage: object = None

    @property
    def vector(self) -> list[float]:
        return self.data[0].embedding

    @property
    def input_tokens(self) -> int:
        return input_tokens(self.usage)


class Endpoint:
    """Client of one role. Close it in the event loop that used it; then it may be used in another.

    Raises `KeyMissing` when it is made, not at the first request.
    """

    def __init__(self, role: Role, send: Send | None = None) -> None:
        self.role = role
        self._send = send
        self.form = AcceptedForm(role)
        self._key = api_key(role)
        self._server: ServerSettings | None = None
        self._asked_context = False
        self._answered = False

    @cached_property
    def _client(self) -> openai.AsyncOpenAI:
        import openai

        from kinodex.agent.models.bounded_http import BoundedClient

        async def note_answer(response: object) -> None:
            self._answered = True

        hooks = {"response": [note_answer]}
        role, http = self.role, BoundedClient(verify=trusted_certificates(), event_hooks=hooks)
        return openai.AsyncOpenAI(
            base_url=role.base_url, api_key=self._key, timeout=role.timeout_s, max_retries=0, http_client=http
        )

    @cached_property
    def _slots(self) -> Slots:
        return slots_at(self.role.place)

    @cached_property
    def _asking(self) -> asyncio.Lock:
        return asyncio.Lock()

    def open(self) -> None:
        """Load the client now, which takes a second, not while a first question waits."""
        self._client  # noqa: B018 - made at the first access

    async def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        client = self.__dict__.pop("_client", None)
        for name in ("_slots", "_asking"):
            self.__dict__.pop(name, None)
        if client is not None:
            await client.close()

    async def complete(self, request: CompletionRequest) -> Completion:
        """Request one completion, written in the way that this endpoint accepts.

        Raises `ModelUnreachable`, `ModelRejected`, `ModelUnknown`.
        """
        await self._server_settings()
        async with self._slots.taken(self.role.at_once, self.role.timeout_s):
            completion = await self._complete(request)
            if self._had_no_room(completion, request):
                completion = (await self._complete(request)).after(completion)
        if self._slots.is_full:
            # The next request goes out before this reply is worked on, which holds up the event loop.
            await asyncio.sleep(SEND_TIME_S)
        return completion

    def _had_no_room(self, completion: Completion, request: CompletionRequest) -> bool:
        """Return True for thoughts without a reply, if another try has more tokens, or no texts that end it within.

        What is learnt of the model holds from now on.
        """
        mentioned = any(each.replace("/", "") in completion.text for each in request.stop)
        is_stopped = mentioned and is_thinking(completion.text)
        is_empty = is_stopped or not (completion.calls or completion.reply(in_words=request.form == "text").strip())
        is_cut = is_stopped or completion.finish_reason == "length"
        before = self.form.parameters(request)
        self.form.thinks |= bool(completion.thoughts) or (is_empty and is_cut)
        return is_empty and (is_cut or bool(completion.thoughts)) and self.form.parameters(request) != before

    async def _complete(self, request: CompletionRequest) -> Completion:
        import openai

        while True:
            sent = Attempt(self.form.fit(request), self.form.parameters(request))
            try:
                is_final, on_failure = partial(self._is_final, sent), partial(self._slow_down, time.monotonic())
                completion = await with_retries(self.role, partial(self._attempt, sent), is_final, on_failure)
                return replace(completion, sheets=sent.fitted.sheets)
            except openai.APIStatusError as error:
                lesson = self.form.lesson(error, sent.parameters, sent.fitted.messages)
                if lesson is None:
                    raise await self._explain(error, count_pictures(sent.fitted.messages)) from error
                lesson()
            except openai.APIConnectionError as error:
                raise provider_errors.connection_error(self.role, error) from error

    def _slow_down(self, began_s: float, error: BaseException, limit_s: float) -> str:
        """Send fewer requests at once after one that came to nothing for their number; say so once of time-outs."""
        is_late = provider_errors.is_timeout(error)
        if not is_late and not provider_errors.is_busy(error):
            return ""
        width = self._slots.narrow(began_s)
        if not is_late or self._slots.said_slow:
            return ""
        self._slots.said_slow = True
        together = "one request goes" if width == 1 else f"{width} requests go"
        return (
            f"gives no reply in {limit_s / 2:g} s; each such request is sent once more, with {limit_s:g} s, and "
            f"{together} out at once: raise the role's timeout_s ({self.role.timeout_s:g}), lower its at_once "
            f"({self.role.at_once}), or take a faster model"
        )

    async def post(self, body: dict[str, object], limit_s: float | None = None) -> object:
        """Post the body of a request for a completion once; gives the answer as JSON values.

        A reply may take `limit_s`; None: as long as the role says.
        """
        # Not `chat.completions.create`, which checks every part of every message: that doubles the time.
        limit: Any = {"timeout": self.role.timeout_s if limit_s is None else limit_s}
        answer: object = await self._client.post("/chat/completions", body=body, cast_to=object, options=limit)
        return answer

    async def _attempt(self, sent: Attempt, limit_s: float) -> Completion:
        body = {"model": self.role.model, "messages": sent.fitted.messages, **sent.parameters}
        answer: object = None
        try:
            answer = await (self.post(body, limit_s) if self._send is None else self._send(body))
            return parse_completion(answer)  # it may be a page of text, or an error sent with status 200
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise provider_errors.no_completion(self.role, f"a broken text: {error}") from error
        except ValidationError as error:
            hidden = refusal_causes.hidden_error(answer, self.role.base_url)
            raise hidden or provider_errors.no_completion(self.role, answer) from error

    async def embed(self, body: dict[str, object], pictures: int) -> Embedded:
        """Have `/embeddings` make one vector of the messages of a body, as vLLM's chat form of it takes them.

        Raises `ModelUnreachable`, `ModelRejected`, `ModelUnknown`.
        """
        import openai

        async def attempt(limit_s: float) -> Embedded:
            limit: Any = {"timeout": limit_s}
            answer: object = await self._client.post("/embeddings", body=body, cast_to=object, options=limit)
            try:
                return Embedded.model_validate(answer)
            except ValidationError as error:
                hidden = refusal_causes.hidden_error(answer, self.role.base_url)
                raise hidden or provider_errors.no_embedding(self.role, answer) from error

        try:
            async with self._slots.taken(self.role.at_once, self.role.timeout_s):
                on_failure = partial(self._slow_down, time.monotonic())
                return await with_retries(self.role, attempt, self._is_absent, on_failure)
        except openai.APIStatusError as error:
            raise await self._explain(error, pictures, "embeddings of messages") from error
        except openai.APIConnectionError as error:
            raise provider_errors.connection_error(self.role, error) from error

    def _is_final(self, sent: Attempt, error: BaseException) -> bool:
        """Return True for a refusal of the request itself, whatever its status.

        Some servers report those as their failure.
        """
        import openai

        if not isinstance(error, openai.APIStatusError):
            return self._is_absent(error)
        messages = sent.fitted.messages
        blind = refusal_causes.most_images(error, count_pictures(messages)) == 0
        return blind or self.form.lesson(error, sent.parameters, messages) is not None

    def _is_absent(self, error: BaseException) -> bool:
        """Return True where nothing listens and nobody has answered yet; a server that has may be starting again."""
        return not self._answered and provider_errors.is_refused(error)

    async def find_context(self) -> int | None:
        """Return the tokens that the model can hold: what is known, else what the server says; None if nobody does."""
        server = await self._server_settings()
        async with self._asking:
            if self.form.context_tokens is None and not self._asked_context:
                limit = server.context_tokens or await self._ask_context()
                self._asked_context = True
                if limit is not None:
                    self.form.limit_context(limit)
        return self.form.context_tokens

    async def _server_settings(self) -> ServerSettings:
        """Ask a server of one's own, once, how many requests it answers together; a service of others has quotas."""
        async with self._asking:
            if self._server is None:
                told = await of_llama_cpp(self._call) if self._may_ask else None
                self._server = told or ServerSettings()
                if self._server.served is not None:
                    self._slots.limit(self._server.served)
        return self._server

    @property
    def _may_ask(self) -> bool:
        return self._send is None and is_private(self.role.host) and "?" not in self.role.base_url

    async def _ask_context(self) -> int | None:
        ollama = await of_ollama(self._call, self.role.model) if self._may_ask else None
        if ollama is not None:
            return ollama.context_tokens
        return listed_context(await self.list_models(), self.role.model)

    async def _call(self, path: str, body: dict[str, object] | None) -> object:
        """Call the server's own interface, which stands beside that of OpenAI; None if that fails."""
        import openai

        address = self.role.base_url.removesuffix("/v1") + path
        limit: Any = {"timeout": min(LISTING_S, self.role.timeout_s) if body is None else self.role.timeout_s}
        try:
            if body is None:
                answer: object = await self._client.get(address, cast_to=object, options=limit)
            else:
                answer = await self._client.post(address, body=body, cast_to=object, options=limit)
        except (openai.OpenAIError, ModelError, ValueError):
            return None
        return answer

    async def _explain(
        self, error: openai.APIStatusError, pictures: int, offer: str = provider_errors.COMPLETIONS
    ) -> ModelError:
        models = await self.list_models() if refusal_causes.may_reject_model(error) else None
        names = None if models is None else [str(model["id"]) for model in models if "id" in model]
        return provider_errors.status_error(self.role, error, names, pictures, offer)

    async def list_models(self) -> list[dict[str, object]] | None:
        """Return the models that the server lists, as it describes them; None if it lists none."""
        import openai

        try:
            listed: object = await self._client.with_options(timeout=LISTING_S).get("/models", cast_to=object)
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
