"""One OpenAI-compatible endpoint: what it accepts is learned from its refusals, once, and remembered."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Literal, cast

from pydantic import BaseModel, ValidationError

from agent.models import provider_errors as refusals
from agent.models.chat_messages import Message, with_text
from agent.models.completion import Completion, read_completion
from agent.models.retries import with_retries
from agent.models.role_config import Role, api_key
from agent.models.structured_output import NEXT_RUNG, Rung, response_format, schema_request, tool_parameters

if TYPE_CHECKING:
    import openai

MAX_TOKENS, MAX_COMPLETION_TOKENS = "max_tokens", "max_completion_tokens"
SENT_S = 0.002
"""A little longer than a request takes from getting its slot to the wire."""
DROPPABLE = (MAX_TOKENS, MAX_COMPLETION_TOKENS, "temperature", "seed", "parallel_tool_calls")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ask:
    """What a completion is asked for, however the endpoint wants it written."""

    messages: list[Message]
    reply: type[BaseModel]
    temperature: float
    form: Literal["json", "text", "tools"] = "json"
    tools: tuple[type[BaseModel], ...] = ()


class Endpoint:
    """The client of one role. Close it in the event loop that used it; then it may be used in another.

    Raises `KeyMissing` when it is made, not at the first request.
    """

    def __init__(self, role: Role) -> None:
        self.role = role
        self.rung: Rung = "json_schema"
        self.takes_tools = True
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
        self._client  # noqa: B018 - made when it is first looked at

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
        async with self._slots:
            completion = await self._completed(ask)
        if self._slots.locked():
            # Whoever gets the slot is to send its request before this reply is thought about, which holds up the loop.
            await asyncio.sleep(SENT_S)
        return completion

    async def _completed(self, ask: Ask) -> Completion:
        import openai

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
        body = {"model": self.role.model, "messages": messages, **parameters}
        answer: object = None
        try:
            # Not `chat.completions.create`, which looks at every part of every message: as long as all else takes.
            answer = await self._client.post("/chat/completions", body=body, cast_to=object)
            return read_completion(answer)  # it may be a page of text, or an error sent with status 200
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise refusals.no_completion(self.role, f"a broken text: {error}") from error
        except ValidationError as error:
            raise refusals.no_completion(self.role, answer) from error

    def _messages(self, ask: Ask) -> list[Message]:
        if self.rung == "json_schema" or ask.form == "text" or self._calls_tools(ask):
            return ask.messages
        return [with_text(ask.messages[0], schema_request(ask.reply)), *ask.messages[1:]]

    def _calls_tools(self, ask: Ask) -> bool:
        return ask.form == "tools" and self.takes_tools

    def _parameters(self, ask: Ask) -> dict[str, object]:
        role = self.role
        second_name = role.max_tokens if MAX_TOKENS in self._dropped else None
        wanted: dict[str, object] = {
            MAX_TOKENS: role.max_tokens,
            MAX_COMPLETION_TOKENS: second_name,
            "temperature": ask.temperature,
            "seed": role.seed,
        }
        if self._calls_tools(ask):
            wanted |= tool_parameters(ask.tools)
        elif ask.form != "text":
            wanted["response_format"] = response_format(self.rung, ask.reply)
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
        if name is None and "tools" in sent and "tools" not in self.role.extra and refusals.names_tools(error):
            self._do_without_tools()
            return True
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

    def _do_without_tools(self) -> None:
        if self.takes_tools:
            self.takes_tools = False
            log.warning("%s at %s takes no tools; asking for JSON", self.role.model, self.role.host)

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
