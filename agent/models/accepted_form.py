"""The form of requests that a server accepts: learned from its refusals, once for each process.

Schemas, tools and parameters that it does not know are left out or rewritten, and pictures over its limit become
contact sheets. What kinodex never sends needs no learning: no system message, and no two messages of one speaker.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, cast

from pydantic import BaseModel

from agent.core.reply_schema import Schema, strict_schema
from agent.models import refusals
from agent.models.contact_sheets import FittedMessages, count_pictures, fit_pictures
from agent.models.role_config import Role
from agent.models.structured_output import NEXT_RUNG, Rung, response_format, schema_request, tool_parameters
from agent.prompts.render import Message, append_text

if TYPE_CHECKING:
    import openai

MAX_TOKENS, MAX_COMPLETION_TOKENS = "max_tokens", "max_completion_tokens"
DROPPABLE = (MAX_TOKENS, MAX_COMPLETION_TOKENS, "temperature", "seed", "parallel_tool_calls")

REPLY_SHARE = 1 / 4
"""The share of a context that is kept for the reply at most."""

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

    tool_choice: str = "required"
    schema_name: str = ""
    """That of the schema; "": that of the reply's class."""

    @property
    def reply_schema(self) -> Schema:
        """The schema that a reply has to fit."""
        return strict_schema(self.reply) if self.schema is None else self.schema


class AcceptedForm:
    """Forms that the server of a role accepts, as far as they are known."""

    def __init__(self, role: Role) -> None:
        self.role = role
        self.rung: Rung = "json_schema"
        self.supports_tools = True
        self.images = role.images
        """The most pictures of a request; None while no request had too many."""
        self.context_tokens = role.context_tokens
        """What the model can hold; None while it is not known."""
        self._dropped: set[str] = set()

    def fit(self, request: CompletionRequest) -> FittedMessages:
        """Write the messages of a request: with the schema in words where the server is not bound to it."""
        messages = request.messages
        if self.rung != "json_schema" and request.form != "text" and not self._offers_tools(request):
            messages = [append_text(messages[0], schema_request(request.reply_schema)), *messages[1:]]
        return fit_pictures(messages, self.images) if self.images else FittedMessages(messages)

    def _offers_tools(self, request: CompletionRequest) -> bool:
        return bool(request.tools) and self.supports_tools

    @property
    def reply_tokens(self) -> int:
        """The most tokens of a reply: the role's, but no more than its share of a short context."""
        most = self.role.max_tokens
        return most if self.context_tokens is None else max(1, min(most, int(REPLY_SHARE * self.context_tokens)))

    def limit_context(self, tokens: int) -> None:
        """Remember that the model holds no more than so many tokens."""
        if self.context_tokens is None or tokens < self.context_tokens:
            self.context_tokens = tokens
            change = f"a reply has {self.reply_tokens:,} at most, and what a longer request quotes is shortened"
            self._warn(f"holds {tokens:,} tokens; {change}")

    def parameters(self, request: CompletionRequest) -> dict[str, object]:
        """Write the other fields of a request's body."""
        role = self.role
        second_name = self.reply_tokens if MAX_TOKENS in self._dropped else None
        parameters: dict[str, object] = {
            MAX_TOKENS: self.reply_tokens,
            MAX_COMPLETION_TOKENS: second_name,
            "temperature": request.temperature,
            "seed": role.seed,
        }
        if self._offers_tools(request):
            parameters |= tool_parameters(request.tools, request.tool_choice)
        elif request.form != "text":
            name = request.schema_name or request.reply.__name__
            parameters["response_format"] = response_format(self.rung, name, request.reply_schema)
        dropped = self._dropped
        sent = {name: value for name, value in parameters.items() if value is not None and name not in dropped}
        return {**sent, **role.extra}

    def lesson(
        self, error: openai.APIStatusError, sent: dict[str, object], messages: list[Message]
    ) -> Callable[[], None] | None:
        """A function that changes what is sent from now on because of a refusal; None if nothing would help."""
        if refusals.is_money_spent(error) or refusals.is_filtered(error) or refusals.is_context_spent(error):
            return None
        pictures = count_pictures(messages)
        most = refusals.most_images(error, pictures)
        if most is not None:
            return partial(self._show_fewer, most) if most else None
        own, form = self.role.extra, sent.get("response_format")
        if isinstance(form, dict) and "response_format" not in own and refusals.rejects_format(error):
            return partial(self._step_down, cast(Rung, form["type"]))
        name = refusals.rejected_parameter(error, [name for name in DROPPABLE if name in sent and name not in own])
        if name is not None:
            return partial(self._drop, name)
        if "tools" in sent and "tools" not in own and refusals.rejects_tools(error):
            return self._do_without_tools
        return None

    def _show_fewer(self, most: int) -> None:
        if self.images is None or most < self.images:
            self.images = most
            self._warn(f"takes {most} pictures in a request; showing more frames as contact sheets")

    def _step_down(self, refused: Rung) -> None:
        if self.rung == refused:  # else another request was refused before
            self.rung = NEXT_RUNG[refused]
            self._warn(f"takes no {refused}; asking for {self.rung}")

    def _drop(self, name: str) -> None:
        if name not in self._dropped:
            self._dropped.add(name)
            self._warn(f"takes no {name}; asking without")

    def _do_without_tools(self) -> None:
        if self.supports_tools:
            self.supports_tools = False
            self._warn("takes no tools; asking for JSON")

    def _warn(self, change: str) -> None:
        log.warning("%s at %s %s", self.role.model, self.role.host, change)
