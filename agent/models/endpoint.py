"""One OpenAI-compatible endpoint: requests in the form that it accepts, and retries of what may pass.

The client's own retries are switched off, because they have no limit on the whole time, log nothing that a user sees,
repeat a request that a spent quota refused, and do not repeat one that got an answer without a completion.
"""

from __future__ import annotations

import asyncio
import base64
import io
import json
import logging
import math
import os
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from pydantic import BaseModel, Field, FiniteFloat, ValidationError, field_validator

from kinodex.agent.limits import held
from kinodex.agent.models import provider_errors
from kinodex.agent.models.completion import (
    NEXT_RUNG,
    Completion,
    Rung,
    input_tokens,
    parse_completion,
    response_format,
    schema_request,
    tool_parameters,
)
from kinodex.agent.models.roles import Role, api_key
from kinodex.agent.prompts import JPEG_QUALITY, Message, Part, append_text, data_url, without_calls
from kinodex.agent.replies import Schema, strict_schema
from kinodex.index.pictures import stored_picture
from kinodex.index.spaces.fingerprint import MOST_DIMENSIONS
from kinodex.redaction import redact

if TYPE_CHECKING:
    import ssl

    import openai
    from tenacity import RetryCallState

    from kinodex.agent.errors import ModelError

# Contact sheets: several pictures as numbered tiles of one, for servers that take fewer pictures than a request has.
#
# The rule: the pictures are dealt out in their order to as many sheets as the server takes pictures, at most
# `MAX_TILES` on each. What does not fit even so is left out evenly: the first and the last picture stay. A sheet stands
# where its first picture stood, after a text that says which tile is which frame; each tile has its number and label
# drawn above it.

MAX_TILES = 16
SHEET_SIDE_PX = 1536
"""The longest side of a sheet: OpenAI's and Qwen's models read about that much."""
STRIP_PX, GAP_PX = 24, 4
FONT_PX = 16
LABEL_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class FittedMessages:
    """Messages with no more pictures than a server takes, the number of sheets in them, and of frames left out."""

    messages: list[Message]
    sheets: int = 0
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class _Picture:
    """A picture of chat messages: the places of its message and part, its label before it ("": none), its contents."""

    message: int
    part: int
    label: str
    image: dict[str, str]


def _pictures(messages: Sequence[Message]) -> list[_Picture]:
    contents: list[Any] = [message["content"] for message in messages]
    return [
        _Picture(number, at, _label(content, at), part["image_url"])
        for number, content in enumerate(contents)
        if isinstance(content, list)
        for at, part in enumerate(content)
        if "image_url" in part
    ]


def _label(content: Sequence[Mapping[str, Any]], at: int) -> str:
    """The text right before a picture, if it is a label: one short line."""
    text = str(content[at - 1].get("text", "")) if at else ""
    return text if 0 < len(text) <= LABEL_CHARACTERS and "\n" not in text else ""


def count_pictures(messages: Sequence[Message]) -> int:
    return len(_pictures(messages))


def fit_pictures(messages: Sequence[Message], most: int) -> FittedMessages:
    """Put the pictures of messages on at most `most` sheets, if they are more; `most` is at least 1."""
    pictures = _pictures(messages)
    if len(pictures) <= most:
        return FittedMessages(list(messages))
    kept = pictures
    if len(pictures) > (room := most * MAX_TILES):  # at equal distances, the first and the last among them
        kept = [pictures[round(number * (len(pictures) - 1) / max(1, room - 1))] for number in range(room)]
    cuts = [round(number * len(kept) / most) for number in range(most + 1)]
    groups = [kept[start:end] for start, end in pairwise(cuts) if end > start]
    placed: dict[tuple[int, int], list[Part]] = {(each.message, each.part): [] for each in pictures}
    placed |= {(each.message, each.part - 1): [] for each in pictures if each.label}
    for number, group in enumerate(groups, start=1):
        title = f"sheet {number} of {len(groups)}" if len(groups) > 1 else "one picture"
        placed[group[0].message, group[0].part] = _sheet_parts(group, title)
    fitted = []
    for number, message in enumerate(messages):
        content: Any = message["content"]
        if isinstance(content, list):
            parts = [new for at, part in enumerate(content) for new in placed.get((number, at), [part])]
            message = {**message, "content": parts}
        fitted.append(message)
    return FittedMessages(fitted, sum(len(group) > 1 for group in groups), len(pictures) - len(kept))


def _sheet_parts(pictures: Sequence[_Picture], title: str) -> list[Part]:
    """The text and picture of one sheet; a single picture stays as it is."""
    labels = [picture.label or f"picture {number}" for number, picture in enumerate(pictures, start=1)]
    if len(pictures) == 1:
        return [{"type": "text", "text": labels[0]}, {"type": "image_url", "image_url": dict(pictures[0].image)}]
    tiles = "; ".join(f"tile {number} is {label}" for number, label in enumerate(labels, start=1))
    text = f"{title} with {len(pictures)} frames as tiles, by rows, each under its number and label: {tiles}"
    detail = {"detail": "high"} if any("detail" in picture.image for picture in pictures) else {}
    jpegs = [base64.b64decode(picture.image["url"].partition(",")[2]) for picture in pictures]
    image = {"url": data_url(draw_sheet(jpegs, labels)), **detail}
    return [{"type": "text", "text": text}, {"type": "image_url", "image_url": image}]


def draw_sheet(jpegs: Sequence[bytes], labels: Sequence[str]) -> bytes:
    """Draw pictures as tiles of one JPEG, by rows, each under its number and label; no side over `SHEET_SIDE_PX`."""
    from PIL import Image, ImageDraw, ImageFont

    columns = math.ceil(math.sqrt(len(jpegs)))
    rows = math.ceil(len(jpegs) / columns)
    tiles = []
    for jpeg in jpegs:
        with stored_picture(jpeg) as picture:
            tiles.append(picture.convert("RGB"))
        tiles[-1].thumbnail((SHEET_SIDE_PX // columns - GAP_PX, SHEET_SIDE_PX // rows - STRIP_PX))
    width, height = max(tile.width for tile in tiles) + GAP_PX, max(tile.height for tile in tiles) + STRIP_PX
    sheet = Image.new("RGB", (columns * width, rows * height), "black")
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(FONT_PX)
    for number, (tile, label) in enumerate(zip(tiles, labels, strict=True)):
        left, top, text = number % columns * width, number // columns * height, f"{number + 1}: {label}"
        while text and font.getlength(text) > width - 2 * GAP_PX:  # the message says the whole label
            text = text[:-1]
        draw.text((left + 4, top + 2), text, "white", font)
        sheet.paste(tile, (left, top + STRIP_PX))
    encoded = io.BytesIO()
    sheet.save(encoded, "JPEG", quality=JPEG_QUALITY)
    return encoded.getvalue()


T = TypeVar("T")
Send = Callable[[dict[str, object]], Awaitable[object]]
"""Sends the body of a request for a completion and gives the server's answer to it, as JSON values."""
SEND_TIME_S = 0.002
"""A little longer than a request takes from its slot to the wire."""
FIRST_WAIT_S = 0.5
LISTING_S = 10.0
CONTEXT_NAMES = ("max_model_len", "context_length", "context_window", "max_context_length")
LONGEST_WAIT_S = 30.0
JITTER_S = 0.5
log = logging.getLogger(__name__)


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
        """A vector without a length, or with one that overflows, has no unit vector."""
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
        self._send = send or self.post
        self.form = AcceptedForm(role)
        self._key = api_key(role)
        self._listed = False
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
                    raise await self._explain(error, count_pictures(sent.fitted.messages)) from error
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
            hidden = provider_errors.hidden_error(answer, self.role.base_url)
            raise hidden or provider_errors.no_completion(self.role, answer) from error

    async def embed(self, body: dict[str, object], pictures: int) -> Embedded:
        """Have `/embeddings` make one vector of the messages of a body, as vLLM's chat form of it takes them.

        Raises `ModelUnreachable`, `ModelRejected`, `ModelUnknown`.
        """
        import openai

        async def attempt() -> Embedded:
            answer: object = await self._client.post("/embeddings", body=body, cast_to=object)
            try:
                return Embedded.model_validate(answer)
            except ValidationError as error:
                hidden = provider_errors.hidden_error(answer, self.role.base_url)
                raise hidden or provider_errors.no_embedding(self.role, answer) from error

        try:
            async with held(self._slots):
                return await with_retries(self.role, attempt, self._is_absent)
        except openai.APIStatusError as error:
            raise await self._explain(error, pictures, "embeddings of messages") from error
        except openai.APIConnectionError as error:
            raise provider_errors.connection_error(self.role, error) from error

    def _is_final(self, sent: Attempt, error: BaseException) -> bool:
        """True for a refusal of the request itself, whatever its status: some servers report those as their failure."""
        import openai

        if not isinstance(error, openai.APIStatusError):
            return self._is_absent(error)
        messages = sent.fitted.messages
        blind = provider_errors.most_images(error, count_pictures(messages)) == 0
        return blind or self.form.lesson(error, sent.parameters, messages) is not None

    def _is_absent(self, error: BaseException) -> bool:
        """True where nothing listens and nobody has answered yet; a server that has may be starting again."""
        return not self._answered and provider_errors.is_refused(error)

    async def find_context(self) -> int | None:
        """The tokens that the model can hold: what is known, else what the server lists; None if nobody says."""
        if self.form.context_tokens is None and not self._listed:
            self._listed = True
            limit = listed_context(await self.list_models(), self.role.model)
            if limit is not None:
                self.form.limit_context(limit)
        return self.form.context_tokens

    async def _explain(
        self, error: openai.APIStatusError, pictures: int, offer: str = provider_errors.COMPLETIONS
    ) -> ModelError:
        models = await self.list_models() if provider_errors.may_reject_model(error) else None
        names = None if models is None else [str(model["id"]) for model in models if "id" in model]
        return provider_errors.status_error(self.role, error, names, pictures, offer)

    async def list_models(self) -> list[dict[str, object]] | None:
        """The models that the server lists, as it describes them; None if it lists none."""
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

    Waits grow exponentially with jitter, and are at least as long as the server asks (`waits`). The attempts end when
    the next one would begin later than `give_up_after_s`, or after the role's `attempts`, of which those do not count
    to which the server said when to come again.
    """
    import tenacity

    unasked = 0

    def is_over(state: RetryCallState) -> bool:
        nonlocal unasked
        unasked += _asked_s(state) is None
        return unasked >= role.attempts or too_late(state)

    too_late = tenacity.stop_before_delay(role.give_up_after_s)
    retrying = tenacity.AsyncRetrying(
        retry=tenacity.retry_if_exception(lambda error: provider_errors.is_transient(error) and not is_final(error)),
        wait=_wait_s,
        stop=is_over,
        before_sleep=lambda state: _warn(role, state),
        reraise=True,
    )
    return await retrying(attempt)


def _asked_s(state: RetryCallState) -> float | None:
    return provider_errors.asked_wait_of(state.outcome.exception() if state.outcome else None)


def _wait_s(state: RetryCallState) -> float:
    own_s = min(FIRST_WAIT_S * 2.0 ** (state.attempt_number - 1), LONGEST_WAIT_S)
    return max(own_s, _asked_s(state) or 0.0) + random.uniform(0.0, JITTER_S)


def _warn(role: Role, state: RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome else None
    said, attempt = redact(str(error), role.secrets), f"attempt {state.attempt_number + 1} of {role.attempts}"
    if _asked_s(state) is not None:
        attempt = "again, as it asks,"
    log.warning("%s at %s: %s; %s in %.1f s", role.model, role.host, said, attempt, state.upcoming_sleep)


# The form of requests that a server accepts: learned from its refusals, once for each process.
#
# Schemas, tools and parameters that it does not know are left out or rewritten, and pictures over its limit become
# contact sheets. What kinodex never sends needs no learning: no system message, and no two messages of one speaker.

MAX_TOKENS, MAX_COMPLETION_TOKENS = "max_tokens", "max_completion_tokens"
DROPPABLE = (MAX_TOKENS, MAX_COMPLETION_TOKENS, "temperature", "seed", "parallel_tool_calls", "stop")
REPLY_SHARE = 1 / 4
"""The share of a context that is kept for the reply at most."""


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
    reply_tokens: int = 0
    """Tokens that a whole reply may need, where the role's `max_tokens` are too few."""
    stop: tuple[str, ...] = ()
    """Texts that end a reply in words."""
    most_tokens: int | None = None
    """Of the reply, where the context leaves no more."""

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
        self.tokens_an_estimate = 1.0
        """Tokens that the server counts for one that is estimated."""
        self._dropped: set[str] = set()
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

    @property
    def reply_tokens(self) -> int:
        """The most tokens of a reply: the role's, but no more than its share of a short context."""
        most = self.role.max_tokens
        return most if self.context_tokens is None else max(1, min(most, int(REPLY_SHARE * self.context_tokens)))

    def limit_context(self, tokens: int) -> None:
        """Remember that the model holds no more than so many tokens."""
        if self.context_tokens is None or tokens < self.context_tokens:
            self.context_tokens = tokens
            change = f"a reply has {self.reply_tokens:,} at most, and longer requests quote less or show fewer frames"
            self._warn(f"holds {tokens:,} tokens; {change}")

    def parameters(self, request: CompletionRequest) -> dict[str, object]:
        """Write the other fields of a request's body."""
        role = self.role
        may_grow = self._takes_more and self.context_tokens is None
        most = max(self.reply_tokens, request.reply_tokens if may_grow else 0)
        if self.context_tokens is not None and request.most_tokens is not None:
            most = min(most, request.most_tokens)
        second_name = most if MAX_TOKENS in self._dropped else None
        parameters: dict[str, object] = {
            MAX_TOKENS: most,
            MAX_COMPLETION_TOKENS: second_name,
            "temperature": request.temperature,
            "seed": role.seed,
            "stop": [*request.stop] or None,
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
        no_form_helps = (provider_errors.is_money_spent, provider_errors.is_filtered, provider_errors.is_context_spent)
        if any(objects(error) for objects in no_form_helps):
            return None
        pictures = count_pictures(messages)
        most = provider_errors.most_images(error, pictures)
        if most is not None:
            change = f"takes {most} pictures in a request; showing more frames as contact sheets"
            fewest = most if self.images is None else min(most, self.images)
            return partial(self._learn, "images", fewest, change) if most else None
        own, form = self.role.extra, sent.get("response_format")
        if isinstance(form, dict) and "response_format" not in own and provider_errors.rejects_format(error):
            refused = cast(Rung, form["type"])
            lower = NEXT_RUNG[refused] if self.rung == refused else self.rung  # another request was refused before
            return partial(self._learn, "rung", lower, f"takes no {refused}; asking for {lower}")
        lengths = [each for name in (MAX_TOKENS, MAX_COMPLETION_TOKENS) if isinstance(each := sent.get(name), int)]
        if max(lengths, default=0) > self.role.max_tokens and provider_errors.rejects_reply_length(error):
            return partial(self._learn, "_takes_more", value=False)
        droppable = [name for name in DROPPABLE if name in sent and name not in own]
        if (name := provider_errors.rejected_parameter(error, droppable)) is not None:
            return partial(self._learn, "_dropped", self._dropped | {name}, f"takes no {name}; asking without")
        if "tools" in sent and "tools" not in own and provider_errors.rejects_tools(error):
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
