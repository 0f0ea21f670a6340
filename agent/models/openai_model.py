"""A language model behind an OpenAI-compatible endpoint: it answers the requests of agents.

The way of a request: messages (`agent.prompts.rendering`), the cache (`response_cache`), the endpoint (`endpoint`, with
`provider_errors`), the completion and the reply in it (`completion`, `reply_parser`).
"""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import asdict, dataclass, replace
from types import TracebackType
from typing import Any, Generic

from pydantic import TypeAdapter, ValidationError

from kinodex.agent.errors import ContextSpent, Filtered, TakesNoPictures
from kinodex.agent.limits.work_clock import held
from kinodex.agent.models.accepted_form import CompletionRequest
from kinodex.agent.models.completion import Completion
from kinodex.agent.models.contact_sheets import MAX_TILES, TooManyPictures
from kinodex.agent.models.cut_prompts import check_read
from kinodex.agent.models.endpoint import Endpoint, Send
from kinodex.agent.models.reply_parser import parse_reply, parse_whole_parts, with_end
from kinodex.agent.models.response_cache import ResponseCache, cache_key
from kinodex.agent.models.roles import Role
from kinodex.agent.models.schema_ladder import repair_messages, tool_parameters
from kinodex.agent.models.sight import Look, Sight, which_colour
from kinodex.agent.prompts.messages import Message, hash_pictures, join_turns, turn_messages
from kinodex.agent.prompts.rendering import request_message
from kinodex.agent.prompts.shortening import fit_context, fit_pictures, quoted_characters, spread_pictures
from kinodex.agent.prompts.tokens import (
    CHARACTERS_A_TOKEN,
    PictureRule,
    estimate_tokens,
    picture_rule,
    picture_tokens,
    text_tokens,
)
from kinodex.agent.protocol.exchange import Exchange, Usage
from kinodex.agent.protocol.frames import Detail
from kinodex.agent.protocol.reply import R
from kinodex.agent.protocol.request import Request
from kinodex.agent.replies.lengths import most_tokens

STORED = TypeAdapter(Completion)
LONG_TOKENS = 1_500
"""Of quoted words and pictures, by the usual estimate: a request with more may not fit, so that the server is asked
once how much the model holds. The shortest context in use is Ollama's of 2,048, of which the reply takes its part."""
SHORTER_WORDS, LEAST_WORDS = 0.3, 40
"""Of a reply that its limit cut the next has so many words for each token: about half of what there was room for."""
SHORTER = 0.8
"""A request that was refused for its length is this much shorter the next time."""
MOST_WORDS_TOKENS = 2048
"""Of a reply in words, which has no schema: its thoughts, and an action or an answer."""
LEAST_REPLY = 768
"""Tokens of a reply for which frames are shown smaller, and fewer, where a context is short."""


@dataclass(frozen=True, slots=True)
class Received(Generic[R]):
    """A completion with the checked reply in it, or None and one line with the problem."""

    completion: Completion
    reply: R | None
    invalid: str | None
    cached: bool


class OpenAIModel:
    """The model of one role; `async with` closes its connections.

    One `ask` is one completion. A reply that cannot be used is an `Exchange` with `invalid`. A session repeats the
    request with that as `complaint` and the reply as `bad_reply`, and the model is shown both. `sample` keeps
    repetitions of a whole run apart in the cache, since equal requests may have different replies. A reply from
    the cache costs nothing, or with `charge_cached` as much as a new one: for figures that must not depend on
    earlier runs. An invalid reply is never taken from the cache: a server may have been mended since. `send` takes
    the place of the HTTP request.

    Raises `KeyMissing` when it is made; `ask` raises `ModelUnreachable`, `ModelRejected`, `ModelUnknown`.
    """

    has_language = True

    def __init__(
        self,
        role: Role,
        *,
        cache: ResponseCache | None = None,
        sample: int = 0,
        charge_cached: bool = False,
        send: Send | None = None,
    ) -> None:
        self.role = role
        self._endpoint = Endpoint(role, send)
        self._sight = None if send else Sight(role, cache)
        self._cache = cache
        self._sample = sample
        self._charge_cached = charge_cached

    @property
    def name(self) -> str:
        return self.role.model

    async def ask(self, request: Request[R]) -> Exchange[R]:
        if request.any_text and not self.role.reasoning:  # the reply would be reasons alone
            return Exchange(request.Reply.from_text(""), None, cached=True)
        started = time.perf_counter()
        try:
            sent, received = await self._receive_fitted(request)
        except Filtered as error:
            return Exchange(None, f"refused: {error}", seconds=time.perf_counter() - started)
        usage = self._usage(received.completion, lambda: self._messages(sent))
        if not request.asks_for_rest:  # else the others are shown with the request for what the reply lacks
            usage = replace(usage, left_out_frames=len(request.frames) - len(sent.frames))
        if received.cached and not self._charge_cached:
            usage = replace(usage, cost=0.0)
        text, seconds = received.completion.text, time.perf_counter() - started
        return Exchange(received.reply, received.invalid, usage, received.cached, text, seconds)

    async def check_sight(self) -> tuple[TakesNoPictures | None, Usage | None]:
        """Return the problem of a model that takes no pictures, and the costs of a picture that was shown to find
        out.
        """
        look = Look() if self._sight is None else await self._sight.look(self._endpoint)
        reply = look.reply
        return look.problem, None if reply is None else self._usage(reply, lambda: which_colour().messages)

    async def close(self) -> None:
        await self._endpoint.close()

    async def __aenter__(self) -> OpenAIModel:
        self._endpoint.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _receive_fitted(self, request: Request[R]) -> tuple[Request[R], Received[R]]:
        """Return the request as it was sent, made to fit the model's context, and what came of it.

        A refusal for length tells how long the context is, or that a text is longer than it was taken to be; then it
        is sent again, as often as that shortens it.
        """
        sent, reply_tokens = await self._fit(request)
        while True:
            try:
                return sent, await self._receive(sent, request, reply_tokens)
            except TooManyPictures:  # it is known now how many the server takes
                sent, reply_tokens = await self._fit(request)
            except ContextSpent as error:
                sent, reply_tokens = await self._shorter(request, sent, reply_tokens, error)

    async def _shorter(
        self, request: Request[R], sent: Request[R], reply_tokens: int, error: ContextSpent
    ) -> tuple[Request[R], int]:
        """Shorten a request, and the tokens of its reply, after a refusal for length; raises it if nothing helps."""
        while True:
            self._learn_context(self._count(sent) + reply_tokens, error.limit_tokens)
            shorter, fewer_tokens = await self._fit(request)
            if shorter == sent and not self._fits(sent, fewer_tokens):
                raise error
            if (shorter, fewer_tokens) != (sent, reply_tokens):
                return shorter, fewer_tokens

    def _learn_context(self, tokens: int, limit_tokens: int | None) -> None:
        """Learn from a refusal of this many estimated tokens: the limit is the server's where it names one.

        If it names none, or counts more than the estimate, the next try is shorter.
        """
        form = self._endpoint.form
        if limit_tokens is None:
            form.limit_context(int(SHORTER * min(tokens, form.context_tokens or tokens)))
            return
        form.limit_context(limit_tokens)
        if tokens <= limit_tokens:
            form.tokens_an_estimate /= SHORTER

    def _fits(self, request: Request[R], reply_tokens: int) -> bool:
        context_tokens = self._endpoint.form.context_tokens
        return context_tokens is None or self._count(request) + reply_tokens <= context_tokens

    async def _fit(self, request: Request[R]) -> tuple[Request[R], int]:
        """Return a request that fits what server and model take, and the tokens of its reply at most."""
        form = self._endpoint.form
        request = spread_pictures(request, form.images * MAX_TILES) if form.images else request
        is_long = quoted_characters(request) / CHARACTERS_A_TOKEN + self._pictures(request) > LONG_TOKENS
        context_tokens = await self._endpoint.find_context() if is_long else form.context_tokens
        most = form.reply_tokens(needed_tokens(request))
        if context_tokens is None:
            return request, most
        request = fit_context(request, context_tokens, most, self._count)
        least = min(most, LEAST_REPLY)
        request = fit_pictures(request, context_tokens - least, self._count)
        return request, max(least, min(most, context_tokens - self._count(request)))

    def _count(self, request: Request[R]) -> int:
        return math.ceil(
            self._endpoint.form.tokens_an_estimate * estimate_tokens(self._messages(request), self._picture_rule)
        )

    async def _receive(self, request: Request[R], whole: Request[R], reply_tokens: int) -> Received[R]:
        """Receive a reply, from the cache or the endpoint; it is checked against the `whole` request.

        Only valid replies are stored. A stored one that is invalid, by a later prompt or schema, is replaced.
        """
        reasoning = self.role.reasoning
        wire_request = CompletionRequest(
            self._messages(request),
            request.Reply,
            request.sampled_at(self.role.temperature),
            request.form,
            request.tools,
            request.schema(reasoning=reasoning),
            request.tool_choice,
            request.Reply.__name__,
            needed_tokens(request),
            request.reply_tokens + request.frame_tokens * len(request.frames),
            request.stop,
            reply_tokens,
            request.attempt,
        )
        if self._cache is None:
            return self._read(await self._complete(wire_request), whole)
        key = self._key(wire_request, request.attempt)
        async with held(self._cache.lock(key)):
            stored = self._cache.get(key)
            if stored is not None:
                with suppress(
                    ValidationError
                ):  # a row in another shape, which another version wrote: it is asked again
                    known = self._read(STORED.validate_python(stored), whole, cached=True)
                    if known.reply is not None:
                        return known
            received = self._read(await self._complete(wire_request), whole)
            if received.reply is not None:
                self._cache.put(key, asdict(received.completion), instead=stored)
            return received

    async def _complete(self, request: CompletionRequest) -> Completion:
        completion = await self._endpoint.complete(request)
        check_read(self.role, request.messages, completion)
        return completion

    def _read(self, completion: Completion, request: Request[R], *, cached: bool = False) -> Received[R]:
        text = with_end(completion.reply(in_words=request.form == "text"), request.stop)
        completion = replace(completion, text=text)
        return Received(completion, *self._parse(completion, request), cached)

    def _key(self, wire_request: CompletionRequest, attempt: int) -> str:
        """Content key of a request.

        The form that the server accepts (the rung, names of parameters) is left out: each process learns it again,
        and the cache must serve a process that never reached the server.
        """
        settings = self.role.model_dump(include={"base_url", "model", "max_tokens", "seed", "extra"})
        # Of a server's limits those that the user set: they decide how long a reply may be, and if there are sheets.
        settings |= self.role.model_dump(include={"context_tokens", "images"}, exclude_none=True)
        messages = hash_pictures(wire_request.messages)
        content: dict[str, object] = {"messages": messages, "schema": wire_request.reply_schema}
        content |= {"temperature": wire_request.temperature, "form": wire_request.form}
        if wire_request.tools:
            content["tools"] = tool_parameters(
                wire_request.tools, wire_request.tool_choice, reasoning=self.role.reasoning
            )
        return cache_key({**settings, **content, "attempt": attempt, "sample": self._sample})

    def _parse(self, completion: Completion, request: Request[R]) -> tuple[R | None, str | None]:
        """Return the checked reply, or one line with the problem."""
        if completion.refusal or completion.finish_reason == "content_filter":
            return None, f"refused: {completion.refusal or 'the content filter stopped the reply'}"
        if completion.finish_reason == "length":
            if (part := parse_whole_parts(completion.text, request)) is not None:
                return part, None
            if not completion.text.strip():
                spent = f"its thoughts took all of {completion.output_tokens} tokens, and none were left for the reply"
                return None, f"{spent}; raise the role's max_tokens ({self.role.max_tokens}), or let it think less"
            words = max(LEAST_WORDS, int(SHORTER_WORDS * completion.output_tokens) // 10 * 10)
            return (
                None,
                f"cut off after {completion.output_tokens} tokens; write {words} words at most this time",
            )
        if completion.calls > 1:
            return None, f"it holds {completion.calls} calls of tools; give one"
        return parse_reply(completion.text, request)

    def _usage(self, completion: Completion, messages: Callable[[], list[Message]]) -> Usage:
        """Return the tokens that the server counted; else an estimate, by length of texts and size of pictures."""
        price = self.role.price
        shown = {"sheets": completion.sheets}
        if completion.usage_known:
            counted = completion.input_tokens, completion.output_tokens, completion.cached_tokens
            return replace(price.usage(*counted), **shown)
        output = completion.output_tokens or text_tokens(completion.text)
        guess = price.usage(estimate_tokens(messages(), self._picture_rule), output, 0)
        tokens = guess.input_tokens + guess.output_tokens
        return Usage(cost=guess.cost, unknown_calls=1, estimated_tokens=tokens, **shown)

    @property
    def _picture_rule(self) -> PictureRule:
        return picture_rule(self.role.model)

    def _pictures(self, request: Request[Any]) -> int:
        rule = self._picture_rule
        return sum(picture_tokens(each.width_px, each.height_px, rule, each.detail) for each in request.frames)

    def _messages(self, request: Request[R]) -> list[Message]:
        role = self.role
        return wire_messages(request, role.image_side_px, role.reasoning, role.detail)


def needed_tokens(request: Request[Any]) -> int:
    """Return about the tokens of the longest reply to a request: what its schema allows, or it says itself."""
    if request.form == "text":
        return max(MOST_WORDS_TOKENS, request.reply_tokens)
    return max(most_tokens(request.schema()), request.reply_tokens + request.frame_tokens * len(request.frames))


def wire_messages(request: Request[R], side_px: int, reasoning: bool = True, detail: Detail = "auto") -> list[Message]:
    """Write a request as chat messages; after a reply that could not be used, also that reply and its problem.

    `side_px` is the role's limit of a frame's longest side, `reasoning` if the model is to write down its reasons,
    `detail` is for frames where neither they nor the request say it.
    """
    first = replace(request, complaint="", bad_reply="") if request.bad_reply else request
    limit = None if request.full_size else min(side_px, request.image_side_px or side_px)
    message = request_message(first, limit, detail, reasoning=reasoning)
    messages = [message, *turn_messages(request.turns)]
    if request.bad_reply:
        messages += repair_messages(request, reasoning)
    return join_turns(messages)


@asynccontextmanager
async def open_models(
    roles: Mapping[str, Role], *, cache: ResponseCache | None = None, sample: int = 0, charge_cached: bool = False
) -> AsyncIterator[dict[str, OpenAIModel]]:
    """Open a model for each role, as `ask` takes them; close them at the end."""
    settings: dict[str, Any] = {"cache": cache, "sample": sample, "charge_cached": charge_cached}
    models = {name: OpenAIModel(role, **settings) for name, role in roles.items()}
    async with AsyncExitStack() as stack:
        for model in models.values():
            await stack.enter_async_context(model)
        yield models
