"""One OpenAI-compatible endpoint: what it accepts is learned from its refusals, once, and remembered."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, cast

from pydantic import BaseModel

from agent import refusals
from agent.retries import with_retries
from agent.roles import Role, api_key
from agent.structured import NEXT_RUNG, Rung, response_format, schema_request
from agent.wire import Message, with_text

if TYPE_CHECKING:
    import openai
    from openai.types.chat import ChatCompletion, ChatCompletionMessageParam

MAX_TOKENS, MAX_COMPLETION_TOKENS = "max_tokens", "max_completion_tokens"
DROPPABLE = (MAX_TOKENS, MAX_COMPLETION_TOKENS, "temperature", "seed")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ask:
    """What a completion is asked for, however the endpoint wants it written."""

    messages: list[Message]
    reply: type[BaseModel]
    temperature: float


@dataclass(frozen=True, slots=True)
class Completion:
    """What a server sent; `text` is as the model wrote it. `refusal` is empty unless the model refused."""

    text: str
    refusal: str = ""
    finish_reason: str = "stop"
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0


class Endpoint:
    """The client of one role. Close it in the event loop that used it; then it may be used in another.

    Raises `KeyMissing` when it is made, not at the first request.
    """

    def __init__(self, role: Role) -> None:
        self.role = role
        self.rung: Rung = "json_schema"
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

    async def close(self) -> None:
        """Close the connections; the next request would open new ones."""
        client = self.__dict__.pop("_client", None)
        self.__dict__.pop("_slots", None)
        if client is not None:
            await client.close()

    async def complete(self, ask: Ask) -> Completion:
        """One completion, asked for in the way that this endpoint accepts.

        Raises `ModelUnreachable`, `ModelRejected`, `ModelUnknown`.
        """
        import openai

        async with self._slots:
            while True:
                asked, parameters = self._messages(ask), self._parameters(ask)
                try:
                    return await with_retries(self.role, partial(self._attempt, asked, parameters))
                except openai.APIStatusError as error:
                    if not self._learn(error, parameters):
                        raise refusals.explained(self.role, error, await self._model_names(error)) from error
                except openai.APIConnectionError as error:
                    raise refusals.unreachable(self.role, error) from error

    async def _attempt(self, messages: list[Message], parameters: dict[str, object]) -> Completion:
        from openai.types.chat import ChatCompletion

        sent = cast("list[ChatCompletionMessageParam]", messages)
        try:
            answer: object = await self._client.chat.completions.create(
                model=self.role.model, messages=sent, extra_body=parameters
            )
        except json.JSONDecodeError as error:
            raise refusals.no_completion(self.role, f"malformed JSON: {error}") from error
        # The client hands on what it cannot type: a page of text, or an error sent with status 200.
        if not isinstance(answer, ChatCompletion):
            raise refusals.no_completion(self.role, answer)
        if not answer.choices:
            raise refusals.no_completion(self.role, answer.model_dump(exclude_none=True))
        return _completion(answer)

    def _messages(self, ask: Ask) -> list[Message]:
        if self.rung == "json_schema":
            return ask.messages
        return [with_text(ask.messages[0], schema_request(ask.reply)), *ask.messages[1:]]

    def _parameters(self, ask: Ask) -> dict[str, object]:
        role = self.role
        second_name = role.max_tokens if MAX_TOKENS in self._dropped else None
        wanted = {
            MAX_TOKENS: role.max_tokens,
            MAX_COMPLETION_TOKENS: second_name,
            "temperature": ask.temperature,
            "seed": role.seed,
            "response_format": response_format(self.rung, ask.reply),
        }
        dropped = self._dropped
        kept = {name: value for name, value in wanted.items() if value is not None and name not in dropped}
        return {**kept, **role.extra}

    def _learn(self, error: openai.APIStatusError, sent: dict[str, object]) -> bool:
        """Whether the refusal names something that can be asked otherwise; if so, it is from now on."""
        asked = sent.get("response_format")
        if isinstance(asked, dict) and refusals.names_format(error):
            self._step_down(cast(Rung, asked["type"]))
            return True
        name = refusals.named_parameter(error, [name for name in DROPPABLE if name in sent])
        if name is None or name in self.role.extra:
            return False
        self._dropped.add(name)
        log.warning("%s at %s takes no %s; asking without", self.role.model, self.role.host, name)
        return True

    def _step_down(self, refused: Rung) -> None:
        if self.rung == refused:  # else another request has met the refusal already
            self.rung = NEXT_RUNG[refused]
            role = self.role
            log.warning("%s at %s takes no %s; asking for %s", role.model, role.host, refused, self.rung)

    async def _model_names(self, error: openai.APIStatusError) -> list[str] | None:
        """The models that the server lists, if the refusal may be about the model and the server says."""
        import openai

        if not refusals.may_name_model(error):
            return None
        try:
            listed: object = await self._client.get("/models", cast_to=object)
        except (openai.OpenAIError, json.JSONDecodeError):
            return None
        models = listed.get("data") if isinstance(listed, dict) else None
        return [str(model["id"]) for model in models if "id" in model] if isinstance(models, list) else None


def _completion(answer: ChatCompletion) -> Completion:
    choice, usage = answer.choices[0], answer.usage
    details = usage.prompt_tokens_details if usage else None
    return Completion(
        text=_whole(choice.message.content),
        refusal=refusals.clipped(_whole(choice.message.refusal)),
        finish_reason=choice.finish_reason or "stop",
        input_tokens=(usage.prompt_tokens or 0) if usage else 0,
        output_tokens=(usage.completion_tokens or 0) if usage else 0,
        cached_tokens=(details.cached_tokens or 0) if details else 0,
    )


def _whole(text: str | None) -> str:
    """The text without halves of characters: they pass through JSON, but cannot be sent again or written."""
    return (text or "").encode(errors="replace").decode()
