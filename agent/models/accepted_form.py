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

from kinodex.agent.models import refusal_causes
from kinodex.agent.models.contact_sheets import FittedMessages, count_pictures, fit_pictures
from kinodex.agent.models.roles import Role, is_private
from kinodex.agent.models.schema_ladder import NEXT_RUNG, Rung, response_format, schema_request, tool_parameters
from kinodex.agent.prompts.messages import Message, append_text, without_calls
from kinodex.agent.replies.lengths import with_text_limits
from kinodex.agent.replies.schema import Schema, strict_schema

if TYPE_CHECKING:
    import openai


log = logging.getLogger(__name__)
MAX_TOKENS, MAX_COMPLETION_TOKENS = "max_tokens", "max_completion_tokens"
DROPPABLE = (MAX_TOKENS, MAX_COMPLETION_TOKENS, "temperature", "seed", "parallel_tool_calls", "stop")
THINKING_TOKENS = 12_288
"""Of the thoughts of a model that thinks before it writes, unless the role's own `max_tokens` are for both."""
REPLY_SHARE = 1 / 4
THINKING_SHARE = 1 / 2
"""The share of a context that is kept for the reply at most, without and with thoughts."""


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
    needed_tokens: int | None = None
    """Tokens of the longest reply; None: as many as the role's `max_tokens`."""
    least_tokens: int = 0
    """Tokens that a whole reply needs, even where the role's `max_tokens` are fewer."""
    stop: tuple[str, ...] = ()
    """Texts that end a reply in words."""
    most_tokens: int | None = None
    """Of the reply, where the context leaves no more."""
    attempt: int = 0
    """Each has a seed of its own."""

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
        self.limits_texts = is_private(role.host)
        """True if texts have a greatest length in schemas: servers of one's own take that, OpenAI's refuses it."""
        self.images = role.images
        """The most pictures of a request; None while no request had too many."""
        self.context_tokens = role.context_tokens
        """What the model can hold; None while it is not known."""
        self.tokens_an_estimate = 1.0
        """Tokens that the server counts for one that is estimated."""
        self._dropped: set[str] = set()
        self.thinks = False
        """True once a reply had thoughts beside it, or nothing else: they need tokens too."""
        self._takes_more = True
        """False once the server refused more tokens for a reply than the role's."""

    def fit(self, request: CompletionRequest) -> FittedMessages:
        """Write the messages of a request: with the schema in words where the server is not bound to it."""
        messages = request.messages if self._offers_tools(request) else without_calls(request.messages)
        if self.rung != "json_schema" and request.form != "text" and not self._offers_tools(request):
            messages = [append_text(messages[0], schema_request(request.reply_schema)), *messages[1:]]
        return fit_pictures(messages, self.images) if self.images else FittedMessages(messages)

    def _offers_tools(self, request: CompletionRequest) -> bool:
        return bool(request.tools) and self.supports_tools

    def reply_tokens(self, needed: int | None = None) -> int:
        """Return the most tokens of a reply that may need so many, and of its thoughts.

        They are the role's where the user gave it some. A short context leaves them a share of it.
        """
        role, share = self.role, REPLY_SHARE
        most, is_given = role.max_tokens, "max_tokens" in role.model_fields_set
        if needed is not None and not is_given:
            most = min(most, needed)
        if self.thinks and self._takes_more and not is_given:
            most, share = role.max_tokens + THINKING_TOKENS, THINKING_SHARE
        return most if self.context_tokens is None else max(1, min(most, int(share * self.context_tokens)))

    def limit_context(self, tokens: int) -> None:
        """Remember that the model holds no more than this many tokens."""
        if self.context_tokens is None or tokens < self.context_tokens:
            self.context_tokens = tokens
            change = f"a reply has {self.reply_tokens():,} at most, and longer requests quote less or show fewer frames"
            self._warn(f"holds {tokens:,} tokens; {change}")

    def parameters(self, request: CompletionRequest) -> dict[str, object]:
        """Write the other fields of a request's body."""
        role = self.role
        most = self.reply_tokens(request.needed_tokens)
        if self._takes_more and self.context_tokens is None:
            most = max(most, request.least_tokens)
        if self.context_tokens is not None and request.most_tokens is not None:
            most = min(most, request.most_tokens)
        second_name = most if MAX_TOKENS in self._dropped else None
        parameters: dict[str, object] = {
            MAX_TOKENS: most,
            MAX_COMPLETION_TOKENS: second_name,
            "temperature": request.temperature,
            "seed": (role.seed or 0) + request.attempt if request.attempt else role.seed,
            "stop": None if self.thinks else [*request.stop] or None,
        }
        if self._offers_tools(request):
            parameters |= tool_parameters(request.tools, request.tool_choice, reasoning=role.reasoning)
        elif request.form != "text":
            name = request.schema_name or request.reply.__name__
            schema = with_text_limits(request.reply_schema) if self.limits_texts else request.reply_schema
            parameters["response_format"] = response_format(self.rung, name, schema)
        dropped = self._dropped
        sent = {name: value for name, value in parameters.items() if value is not None and name not in dropped}
        return {**sent, **role.extra}

    def lesson(
        self, error: openai.APIStatusError, sent: dict[str, object], messages: list[Message]
    ) -> Callable[[], None] | None:
        """Return a function that changes what is sent from now on because of a refusal; None if nothing would help."""
        no_form_helps = (refusal_causes.is_money_spent, refusal_causes.is_filtered, refusal_causes.is_context_spent)
        if any(objects(error) for objects in no_form_helps):
            return None
        pictures = count_pictures(messages)
        most = refusal_causes.most_images(error, pictures)
        if most is not None:
            change = f"takes {most} pictures in a request; showing more frames as contact sheets"
            fewest = most if self.images is None else min(most, self.images)
            return partial(self._learn, "images", fewest, change) if most else None
        own, form = self.role.extra, sent.get("response_format")
        if isinstance(form, dict) and "response_format" not in own and refusal_causes.rejects_format(error):
            refused = cast(Rung, form["type"])
            if self.limits_texts and refusal_causes.rejects_text_limits(error):
                return partial(self._learn, "limits_texts", value=False)
            lower = NEXT_RUNG[refused] if self.rung == refused else self.rung  # another request was refused before
            return partial(self._learn, "rung", lower, f"takes no {refused}; asking for {lower}")
        lengths = [each for name in (MAX_TOKENS, MAX_COMPLETION_TOKENS) if isinstance(each := sent.get(name), int)]
        if max(lengths, default=0) > self.role.max_tokens and refusal_causes.rejects_reply_length(error):
            return partial(self._learn, "_takes_more", value=False)
        droppable = [name for name in DROPPABLE if name in sent and name not in own]
        if (name := refusal_causes.rejected_parameter(error, droppable)) is not None:
            return partial(self._learn, "_dropped", self._dropped | {name}, f"takes no {name}; asking without")
        if "tools" in sent and "tools" not in own and refusal_causes.rejects_tools(error):
            return partial(self._learn, "supports_tools", False, "takes no tools; asking for JSON")
        return None

    def _learn(self, name: str, value: object, change: str = "") -> None:
        """Keep what is known of the server from now on, and warn of the change, once."""
        if getattr(self, name) != value:
            setattr(self, name, value)
            if change:
                self._warn(change)

    def _warn(self, change: str) -> None:
        log.warning("%s at %s %s", self.role.model, self.role.host, change)
