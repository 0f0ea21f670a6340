"""Requests and replies: the border between agents and the models that answer them.

A reply's class, its JSON schema, the words about it in the prompt and its example have one order (`reply_schema`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, ClassVar, Generic, Literal, Protocol, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from agent.core.answer_rules import Declining
from agent.core.joint_schema import Joint
from agent.core.question import LATER
from agent.core.reply_schema import (
    REASONING,
    Bounds,
    Schema,
    bound_schema,
    plainest,
    strict_schema,
    without_reasoning,
)

REASONING_NAMES = (REASONING, "thought", "thoughts", "explanation", "reason", "rationale", "analysis")
"""Names under which reasons are read: older traces have "thought", papers' prompts "explanation"."""


def after_thought(text: str) -> str:
    """A reply's text without the reasoning that a model writes before it."""
    return text.rpartition("</think>")[2].strip()


class Reply(BaseModel):
    """A reply; unknown keys are dropped."""

    model_config = ConfigDict(extra="ignore", frozen=True, json_schema_extra={"additionalProperties": False})

    @property
    def declines(self) -> bool:
        """True if it gives up: the evidence is insufficient."""
        return getattr(self, "action", None) == "insufficient_evidence"

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read the reply from a text with its thoughts, for requests of form "text"; raises `InvalidReply`."""
        raise NotImplementedError(f"{cls.__name__} is not asked for as text")


def described(text: str) -> ConfigDict:
    """Configure the description in a reply's schema: models read it, and cached replies and traces depend on it."""
    return ConfigDict(json_schema_extra={"additionalProperties": False, "description": text})


class Reasoned(Reply):
    """A reply that begins with its reasons: a model that writes its choice first has not thought about it.

    They are read under other names too ("thought", "explanation"), and never make a reply invalid.
    """

    reasoning: str = Field(default="", description="your reasoning, in one to three short sentences")

    @model_validator(mode="before")
    @classmethod
    def _read_reasoning(cls, value: object) -> object:
        return with_reasoning(value)


def with_reasoning(value: object) -> object:
    """A JSON object with its reasons, under whatever name, as the text `reasoning`; anything else as it is."""
    if not isinstance(value, Mapping):
        return value
    named = {str(key).casefold(): key for key in value}
    found = [value[named[name]] for name in REASONING_NAMES if name in named]
    return {**value, REASONING: _as_text(next((each for each in found if each is not None), ""))}


def _as_text(thoughts: object) -> str:
    if isinstance(thoughts, list):
        return " ".join(map(_as_text, thoughts))
    return thoughts if isinstance(thoughts, str) else json.dumps(thoughts, ensure_ascii=False)


R = TypeVar("R", bound=Reply)
Detail = Literal["auto", "low", "high"]


@dataclass(frozen=True, slots=True)
class ShownFrame:
    """One frame handed to a model. `time_s` is the time within `video_id` that a player shows."""

    video_id: str
    frame_no: int
    time_s: float
    width_px: int
    height_px: int
    jpeg: bytes = field(repr=False)
    label: int = 0
    """The number under which a run shows the frame, from 1 in the order of arrival; 0: its place in the request."""
    detail: Detail = "auto"
    """The resolution at which a server reads it (OpenAI's `image_url.detail`); "auto": the request's or the role's."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Costs of an exchange. `cached_tokens` are those of `input_tokens` that the server had cached.

    A server that does not say how many tokens it read makes an exchange one of `unknown_calls`: its tokens are
    `estimated_tokens`, in and out, and its cost is an estimate too. `sheets` and `left_out_frames` count what was sent
    to a server that takes few pictures.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: float = 0.0
    unknown_calls: int = 0
    estimated_tokens: int = 0
    sheets: int = 0
    left_out_frames: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """The number of the attempt: a cache or a trace must not answer the second attempt with the first."""

    attempt: int = 0
    complaint: str = ""
    """The fault of the reply to the attempt before, in one line for the model."""
    bad_reply: str = ""
    """That reply, as it was received; a language model is shown it again."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A later message of a conversation, of the model ("assistant") or to it ("user")."""

    speaker: Literal["assistant", "user"]
    text: str


def citation_numbers(frames: Sequence[ShownFrame], notes: Sequence[object] = ()) -> tuple[list[int], list[int]]:
    """The numbers under which replies cite frames and notes as evidence; notes are numbered on from the frames.

    Frames have their labels if all have one, else their places, from 1.
    """
    labels = [frame.label for frame in frames]
    numbers = labels if all(labels) else list(range(1, len(frames) + 1))
    first = max(numbers, default=0) + 1
    return numbers, list(range(first, first + len(notes)))


class Request(Attempt, Generic[R]):
    """A typed request: a frozen dataclass of inputs, which a model answers in its own way."""

    Reply: type[R]
    template: ClassVar[str]
    """File stem in agent/prompts/templates; or, for requests from elsewhere, the template itself, of several lines."""
    role: ClassVar[str]
    """The model that answers if there are several: one of `agent.models.role_config.ROLES`."""
    temperature: ClassVar[float] = 0.5
    form: ClassVar[Literal["json", "text", "tools"]] = "json"
    """The form of the reply. "text": in the words that the template asks for, read by `Reply.from_text`.
    "tools": as one call of one of `tools`, where the endpoint has native tool calls, else as JSON."""
    tools: ClassVar[tuple[type[BaseModel], ...]] = ()
    """The arguments of each tool, distinguished by a field `tool` with one literal value, the tool's name."""
    tool_choice: ClassVar[str] = "required"
    """"required": one of the tools; the name of one: that one; "none": a text. Servers put tools before the messages:
    requests of one conversation offer the same, so that a prefix cache serves them."""
    image_side_px: ClassVar[int | None] = None
    """Frames with a longer side are scaled down to it; None: to the role's limit."""
    full_size: ClassVar[bool] = False
    """True if frames are sent as they are stored, without the role's limit."""
    detail: ClassVar[Detail] = "auto"
    """The `ShownFrame.detail` of frames that have none of their own; "auto": the role's."""
    any_text: ClassVar[bool] = False
    """True if any text is a valid reply, which then does not show that the model makes sense."""
    declining: Declining = "allowed"
    """A field of requests that may be answered by "insufficient_evidence"."""
    stop: ClassVar[tuple[str, ...]] = ()
    """Texts that end a reply of form "text": a model that is sampled in this process stops after one."""
    frames: tuple[ShownFrame, ...] = ()
    """Shown with the request: by video and in time order, or in that of their labels."""
    turns: tuple[Turn, ...] = ()
    """The conversation since the first message, which is the rendered template."""

    def schema(self, *, reasoning: bool = True) -> Schema:
        """The JSON schema of this request's reply in strict mode, in the order in which it is to be written."""
        schema = bound_schema(strict_schema(self.Reply), self.bounds())
        return schema if reasoning else without_reasoning(schema)

    def joint(self) -> Joint | None:
        """The schemas of the replies to all kinds of request of a run, equal for each; None: this one has its own."""
        return None

    def bounds(self) -> Bounds:
        """Bounds of the reply's schema by these inputs; what would change with each request, `check` refuses."""
        return {}

    def example(self) -> Mapping[str, Any]:
        """A reply as JSON values that fits the schema: the prompt shows it."""
        example: Mapping[str, Any] = plainest(self.schema())
        return example

    def interpret(self, reply: R) -> R:
        """Interpret a reply that a model wrote in text: put it on the scale that was asked for, say."""
        return reply

    def check(self, reply: R) -> None:
        """Raise `InvalidReply` if a well-formed reply is impossible for these inputs."""

    def missing(self, reply: R) -> Request[R] | None:
        """The request for what a checked reply leaves out, and for nothing else; None if it is whole."""
        return None

    def join(self, reply: R, rest: R) -> R:
        """One reply of a reply and that to the request for what it leaves out."""
        return reply

    @property
    def instead(self) -> str:
        """The thing to do instead of "insufficient_evidence" where that is not allowed."""
        return "give the answer that the evidence supports best"

    def pattern(self) -> str:
        """A regular expression for replies of form "text", for constrained decoding; "" if any text is one."""
        return ""

    def refusal(self) -> str:
        """Complain about a reply that gives up where `declining` does not allow it."""
        yet = " yet: there is more to look at" if self.declining == "later" else ""
        return f"insufficient_evidence is not accepted{yet}; {self.instead}"

    def in_words(self, text: str) -> R | None:
        """The reply in a text without a JSON object, if it is unambiguous."""
        return None


@dataclass(frozen=True, slots=True)
class Exchange(Generic[R]):
    """An answered request. Either `reply` or `invalid` (the fault, in one line) is set."""

    reply: R | None
    invalid: str | None
    usage: Usage = Usage()
    cached: bool = False
    raw: str = ""
    seconds: float = 0.0
    waited_s: float = 0.0
    """Seconds that it waited for other questions; they are no part of `seconds`."""


class Model(Protocol):
    """A model that answers requests. A bad reply is an `Exchange` with `invalid`; no reply raises `ModelError`."""

    @property
    def name(self) -> str: ...

    @property
    def has_language(self) -> bool:
        """False for a model that answers from vectors alone: agents that reason in words cannot use it."""
        ...

    async def ask(self, request: Request[R]) -> Exchange[R]: ...


Models = Model | Mapping[str, Model]
"""One model for everything, or one per role; role "default" answers for roles that are not listed."""


def model_for(models: Models, role: str) -> Model | None:
    """The model of a role, or the default one; None without both."""
    return models.get(role) or models.get("default") if isinstance(models, Mapping) else models


def request_fields(request: Request[R]) -> dict[str, object]:
    """A request as JSON values; a frame is named by its video, number, time and the hash of its picture."""
    if not is_dataclass(request):
        raise TypeError(f"{type(request).__name__} is not a dataclass")
    return {"kind": type(request).__name__, **_plain_fields(request)}


def request_key(request: Request[R]) -> str:
    """Content key of a request: 32 hex digits, equal exactly when all inputs (and the attempt) are equal."""
    text = json.dumps(request_fields(request), sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def plain(value: object) -> object:
    """Convert frozen dataclasses, tuples and mappings to JSON values; a frame's picture becomes its hash."""
    if isinstance(value, ShownFrame):
        digest = hashlib.sha256(value.jpeg).hexdigest()[:16]
        frame = {"video_id": value.video_id, "frame_no": value.frame_no, "time_s": value.time_s}
        detail = {} if value.detail == "auto" else {"detail": value.detail}
        label = {"label": value.label} if value.label else {}
        return {**frame, "jpeg": digest, **detail, **label}
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return _plain_fields(value)
    return value


def _plain_fields(value: Any) -> dict[str, object]:
    values = [(each, getattr(value, each.name)) for each in fields(value)]
    return {each.name: plain(it) for each, it in values if each.metadata != LATER or it != each.default}
