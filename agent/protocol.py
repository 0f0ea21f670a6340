"""Questions and parts of videos, the rules of answers, and the requests and replies between agents and models."""

from __future__ import annotations

import hashlib
import json
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, ClassVar, Generic, Literal, Protocol, Self, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, model_validator

from kinodex.agent.answer_rules import Declining
from kinodex.agent.errors import BadQuestion, InvalidReply
from kinodex.agent.replies.joint import Joint
from kinodex.agent.replies.schema import (
    REASONING,
    Bounds,
    Schema,
    bound_schema,
    plainest,
    strict_schema,
    without_reasoning,
)
from kinodex.agent.replies.values import says_nothing
from kinodex.index.kinds import KINDS, LINE_KINDS, Kind

MAX_OPTIONS = 26
# Questions, and the parts of videos that requests are about.

LEAST_PREFIX = 4
VIDEOS_NAMED = 5
VIDEO_ID_LENGTH = 12
"""The number of characters of a video's id that name it to a model."""
EXACT_S = 1e-6
"""Times that differ by less are one."""
LISTED = 20
"""Candidates that a prompt lists at all."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """A question that was answered before in the same conversation."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question, open-ended (no options) or multiple-choice (2 to 26 distinct options), perhaps after `earlier` ones.

    Raises `BadQuestion` for an empty text, one option, too many, empty or repeated options, and halves of characters.
    """

    text: str
    options: tuple[str, ...] = ()
    earlier: tuple[Earlier, ...] = ()

    def __post_init__(self) -> None:
        if not (isinstance(self.text, str) and all(isinstance(each, str) for each in self.options)):
            raise BadQuestion(f"got {(self.text, *self.options)!r:.80}; a question and its options are texts")
        if not self.text.strip():
            raise BadQuestion("the question is empty; write what you want to know about the video")
        if len(self.options) == 1 or len(self.options) > MAX_OPTIONS:
            got = f"got {len(self.options)} option" + "s" * (len(self.options) > 1)
            raise BadQuestion(
                f"{got}; a question has none (open-ended) or 2 to {MAX_OPTIONS}; give --option once for each"
            )
        if any(not option.strip() for option in self.options):
            raise BadQuestion("an option is empty; every option needs some text")
        folded = [option.strip().casefold() for option in self.options]
        repeated = next((option for option in folded if folded.count(option) > 1), None)
        if repeated is not None:
            raise BadQuestion(f"the option {repeated!r} is given more than once; options must differ")
        for text in (self.text, *self.options):
            try:
                text.encode()
            except UnicodeEncodeError as error:  # JSON and command lines accept such texts
                half = f"{text[:60]!r} holds {text[error.start]!r}"
                raise BadQuestion(f"{half}, which is half a character; write it in UTF-8") from error

    @property
    def lettered(self) -> tuple[tuple[str, str], ...]:
        """Options with their letters: (("A", "red"), ("B", "blue"), ...)."""
        return tuple(zip(string.ascii_uppercase, self.options, strict=False))


@dataclass(frozen=True, slots=True)
class Video:
    """A video as an agent sees it: it covers [start_s, start_s + duration_s).

    Times are those that a player shows. Without pictures the library holds only words of it: captions or a transcript.
    """

    video_id: str
    title: str
    start_s: float
    duration_s: float
    has_pictures: bool = True

    @property
    def end_s(self) -> float:
        return self.start_s + self.duration_s


def named_video(videos: Sequence[Video], name: str | None) -> Video:
    """The one of some videos that an id, its first digits or a title names; None is the only video.

    Raises `InvalidReply` if there is none, or several.
    """
    if len(videos) == 1 and says_nothing(name):
        return videos[0]
    text = (name or "").strip()
    named = [video for video in videos if text in (video.video_id, video.title)]
    if not named and len(text) >= LEAST_PREFIX:
        named = [video for video in videos if video.video_id.startswith(text)]
    if len(named) == 1:
        return named[0]
    some = ", ".join(video.video_id[:12] for video in videos[:VIDEOS_NAMED])
    more = ", ..." if len(videos) > VIDEOS_NAMED else ""
    raise InvalidReply(f"{name!r} names {len(named) or 'no'} video" + f"; the videos are {some}{more}")


@dataclass(frozen=True, slots=True)
class Anchor:
    """A stored frame that a query matched, by its picture or by words at its time; `similarity` is 0 to 1."""

    video_id: str
    frame_no: int
    time_s: float
    similarity: float
    query: str
    by_words: bool = False


@dataclass(frozen=True, slots=True)
class Segment:
    """The range [start_s, end_s) of one video; `number` is unique within a run, whatever the nesting."""

    number: int
    video_id: str
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Note:
    """A finding about [start_s, end_s) of a video, in words; `source` is the tool or table that it is from.

    `confidence` is 0 to 1, None if it has none. A look that `failed` found nothing out: its note says why, and is no
    evidence for anything.
    """

    video_id: str
    start_s: float
    end_s: float
    source: str
    text: str
    confidence: float | None = None
    failed: bool = False

    def __post_init__(self) -> None:
        # A line of a quotation must not look like a line of the prompt that quotes it.
        object.__setattr__(self, "text", " ".join(self.text.split()))

    @property
    def quoted(self) -> str:
        """The name of its source where a prompt quotes it: the words screen text for `screen_text`."""
        kind = KINDS.get(self.source)
        return self.source if kind is None else kind.quote


def by_kind(notes: Sequence[Note]) -> list[tuple[Kind, list[Note]]]:
    """Group notes that quote lines by their kind, in the order of `LINE_KINDS`."""
    groups = [(KINDS[kind], [note for note in notes if note.source == kind]) for kind in LINE_KINDS]
    return [(kind, lines) for kind, lines in groups if lines]


@dataclass(frozen=True, slots=True)
class LogEntry:
    """Finding of a model in a frame, in one line, once it had seen `after` frames; it stays when the frame leaves.

    `supports` and `excludes` are letters of options. An entry is never changed, and its place is after those frames,
    so that a prompt with it only grows.
    """

    frame: int
    video_id: str
    time_s: float
    text: str
    after: int
    supports: str = ""
    excludes: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", " ".join(self.text.split()))

    @property
    def line(self) -> str:
        sides = (("supports", self.supports), ("excludes", self.excludes))
        said = "".join(f"; {side} {', '.join(letters)}" for side, letters in sides if letters)
        return f"log: frame {self.frame} at {self.time_s:.2f} s: {self.text}{said}"


@dataclass(frozen=True, slots=True)
class ScoredSegment:
    """A segment and its assessment: `score` from 0 to 1 (fused) or 0 to 100 (a reward), or None.

    `divided`: it was explored before, and its parts are candidates beside it. Without `rated` no model has scored it,
    and `score` is from its matches alone.
    """

    segment: Segment
    score: float | None
    explanation: str = ""
    explorable: bool = True
    divided: bool = False
    rated: bool = True

    @property
    def rank(self) -> float:
        return -1.0 if self.score is None else self.score


def listed_candidates(candidates: Iterable[ScoredSegment], scores: str, in_full: bool = False) -> list[ScoredSegment]:
    """The candidates among which a model is asked to choose: those with the highest scores, or all, the best first.

    Where no scores are shown (`scores` is "none") the latest ones: those of the present round could not be chosen else.
    """
    live = [each for each in candidates if each.explorable]
    ordered = sorted(reversed(live) if scores == "none" else live, key=lambda each: -each.rank)
    return ordered if in_full else ordered[:LISTED]


# When a model may say that the evidence is insufficient: the rules of a run, and what a request allows.

"""May a reply say "insufficient_evidence"? "later": not while there is something left to look at; "never": not in this
run."""
INSUFFICIENT = "insufficient_evidence"


def allowed_actions(actions: Sequence[str], declining: Declining) -> tuple[str, ...]:
    """The actions of a reply without "insufficient_evidence" where that is not allowed."""
    return tuple(each for each in actions if each != INSUFFICIENT or declining == "allowed")


# Requests and replies: the border between agents and the models that answer them.
#
# A reply's class, its JSON schema, the words about it in the prompt and its example have one order (`reply_schema`).

REASONING_NAMES = (REASONING, "thought", "thoughts", "explanation", "reason", "rationale", "analysis")
"""Names under which reasons are read: papers' prompts have "thought" and "explanation"."""


def after_thought(text: str) -> str:
    """A reply's text without the reasoning that a model writes before it."""
    return text.rpartition("</think>")[2].strip()


class Reply(BaseModel):
    """A reply; unknown keys are dropped."""

    model_config = ConfigDict(extra="ignore", frozen=True, json_schema_extra={"additionalProperties": False})

    @property
    def declines(self) -> bool:
        """True if it gives up: the evidence is insufficient."""
        return getattr(self, "action", None) == INSUFFICIENT

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read the reply from a text with its thoughts, for requests of form "text"; raises `InvalidReply`."""
        raise NotImplementedError(f"{cls.__name__} is not asked for as text")


def described(text: str) -> ConfigDict:
    """Configure the description in a reply's schema: models read it, and cached replies and traces depend on it."""
    return ConfigDict(json_schema_extra={"additionalProperties": False, "description": text})


def with_reasoning(value: object) -> object:
    """A JSON object with its reasons, under whatever name, as the text `reasoning`; anything else as it is."""
    if not isinstance(value, Mapping):
        return value
    named = {str(key).casefold(): key for key in value}
    found = [value[named[name]] for name in REASONING_NAMES if name in named]
    return {**value, REASONING: _as_text(next((each for each in found if each is not None), ""))}


def read_as(read: Callable[[object], object]) -> Any:
    """Make a validator of a reply's class from a function that completes the JSON value before it is validated."""
    return model_validator(mode="before")(cast(Any, classmethod(lambda cls, value: read(value))))


def read_alone(name: str, kind: type = object) -> Any:
    """Make a validator that reads a value of a kind which stands alone, a list or a number, as the field `name`."""
    return read_as(lambda value: {name: value} if isinstance(value, kind) and not isinstance(value, Mapping) else value)


def _as_text(thoughts: object) -> str:
    if isinstance(thoughts, list):
        return " ".join(map(_as_text, thoughts))
    return thoughts if isinstance(thoughts, str) else json.dumps(thoughts, ensure_ascii=False)


class Reasoned(Reply):
    """A reply that begins with its reasons: a model that writes its choice first has not thought about it.

    They are read under other names too ("thought", "explanation"), and never make a reply invalid.
    """

    reasoning: str = Field(default="", description="your reasoning, in one to three short sentences")
    _read_reasoning = read_as(with_reasoning)


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
    """A later message of a conversation, of the model ("assistant") or to it ("user").

    With the name of a `tool` it is a call, as JSON with the tool's name, or the result of the call before it.
    """

    speaker: Literal["assistant", "user"]
    text: str
    tool: str = ""


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
    """File stem in agent/templates; or, for requests from elsewhere, the template itself, of several lines."""
    role: ClassVar[str]
    """The model that answers if there are several: one of `kinodex.agent.models.roles.ROLES`."""
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
    frame_tokens: ClassVar[int] = 0
    """Tokens that a reply may need for each frame; the role's `max_tokens` are raised to what all need."""
    is_kept: ClassVar[bool] = False
    """True if replies are kept in the library, so that a video pays for them once."""
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
        """A plain reply that fits the schema and these inputs, as JSON values: what a dry run assumes."""
        inputs: dict[str, Any] = {
            name: getattr(self, name, ()) for name in ("segments", "candidates", "notes", "clips", "moments")
        }
        listed = listed_candidates(inputs["candidates"], getattr(self, "scores", ""))
        known: dict[str, Sequence[Any]] = {
            "segment": [each.number for each in (*inputs["segments"], *(candidate.segment for candidate in listed))],
            "cluster": range(1, len(inputs["notes"]) + 1),
            "frame": citation_numbers(self.frames)[0],
            "clips": [each.number for each in inputs["clips"]],
            "moment": [each.number for each in inputs["moments"]],
        }
        for video in getattr(self, "videos", ())[:1]:
            middle_s = video.start_s + video.duration_s / 2
            times = {"start_s": [middle_s], "end_s": [min(video.end_s, middle_s + 8)], "times_s": [middle_s]}
            known |= {"video": [video.video_id[:VIDEO_ID_LENGTH]], **times}
        if getattr(getattr(self, "question", None), "options", ()):
            known["answer"] = [None]
        example: Mapping[str, Any] = plainest(self.schema(), known)
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
    return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
