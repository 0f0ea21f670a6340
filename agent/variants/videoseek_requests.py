"""Requests of VideoSeek: of its three tools to the model that sees, and of its steps to the model that thinks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self, TypeVar, get_args

from pydantic import BaseModel, Field, TypeAdapter, model_validator

from kinodex.agent.environment import Environment
from kinodex.agent.errors import InvalidReply
from kinodex.agent.models.rules import describe_each, is_relevant, rule
from kinodex.agent.protocol import (
    LATER,
    VIDEO_ID_LENGTH,
    Declining,
    Note,
    Question,
    R,
    Reasoned,
    Reply,
    Request,
    Segment,
    ShownFrame,
    Turn,
    Video,
    after_thought,
    citation_numbers,
    described,
)
from kinodex.agent.replies import (
    Bounds,
    Numbers,
    Schema,
    Seconds,
    WholeNumber,
    bound_schema,
    exactly,
    is_blank,
    says_nothing,
    strict_schema,
)
from kinodex.agent.requests.answer import (
    Answered,
    AnswerNotes,
    Conclusion,
    WithChapters,
    check_answer,
    check_not_refused,
    check_numbers,
    join_parts,
    letters,
    missing_frames,
    told_once,
)

# Requests of the three tools to the model that sees: overview, skim and focus (supplement, Figure 6).

SMALL_SIDE_PX = 455
"""The longer side of a 16:9 picture whose shorter one is 256, the size that overview and skim have."""
FRAME_TOKENS = 140
"""Of the 75 words about a frame that is relevant, and the JSON around them."""


class DescribedFrame(Reply):
    """The description of one frame."""

    model_config = described("What one frame shows.")

    frame: WholeNumber = Field(description="its number")
    """Its number among those shown, from 1."""
    description: str = Field(description="what it shows")


class SkimmedFrame(DescribedFrame):
    """The description of one frame, and how it bears on the query (null: it does not)."""

    model_config = described("What one frame shows, and why that bears on the query (null: it does not).")

    relevant: str | None = Field(description="what bears on what is looked for and why, else null")

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, value: object) -> object:
        return {"relevant": None, **value} if isinstance(value, Mapping) else value


class DescribedFrames(Reply):
    """One description for each frame."""

    frames: list[DescribedFrame] = Field(description="one for each frame")


class SkimmedFrames(Reply):
    """One description for each frame, with what bears on the query."""

    frames: list[SkimmedFrame] = Field(description="one for each frame")


class Finding(Reasoned):
    """The answer to the query that a clip gives, and the numbers of the frames that show it."""

    found: bool = Field(description="true if the clip shows it")
    answer: str = Field(description="the answer in few words, else empty")
    frames: Numbers = Field(description="numbers of the frames that show it")

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, value: object) -> object:
        return {"answer": "", "frames": [], **value} if isinstance(value, Mapping) else value


S = TypeVar("S", DescribedFrames, SkimmedFrames)


@dataclass(frozen=True, kw_only=True)
class LookRequest(Request[S]):
    """A description of each of some frames of a range, in small pictures; frames that are left out are asked for."""

    role: ClassVar[str] = "vision"
    image_side_px: ClassVar[int | None] = SMALL_SIDE_PX
    frame_tokens: ClassVar[int] = FRAME_TOKENS
    temperature: ClassVar[float] = 1.0
    videos: tuple[Video, ...]
    segment: Segment
    subtitles: tuple[Note, ...]
    frames: tuple[ShownFrame, ...]

    def bounds(self) -> Bounds:
        return {"frames": exactly(len(self.frames))}

    def interpret(self, reply: S) -> S:
        frames: Sequence[DescribedFrame] = reply.frames
        return reply.model_copy(update={"frames": told_once("frame", frames, citation_numbers(self.frames)[0])})

    def check(self, reply: S) -> None:
        """A reply may leave frames out, but not describe unknown ones, one twice, or none."""
        check_numbers("frame", [each.frame for each in reply.frames], citation_numbers(self.frames)[0])
        if self.frames and not any(each.description.strip() for each in reply.frames):
            raise InvalidReply("no frame is described; give one description for each")
        for each in reply.frames:
            check_not_refused(each.description)

    def missing(self, reply: S) -> Self | None:
        rest = missing_frames(self.frames, [each.frame for each in reply.frames])
        return replace(self, frames=rest) if rest else None

    def join(self, reply: S, rest: S) -> S:
        first: Sequence[DescribedFrame] = reply.frames
        left = citation_numbers(missing_frames(self.frames, [each.frame for each in first]))[0]
        frames = join_parts("frame", first, rest.frames, citation_numbers(self.frames)[0], left)
        return reply.model_copy(update={"frames": frames})


@dataclass(frozen=True, kw_only=True)
class OverviewVideo(LookRequest[DescribedFrames]):
    """Describe each of some frames of a whole video (Figure 6a); `subtitles` are all of the video."""

    Reply = DescribedFrames
    template: ClassVar[str] = "videoseek_overview"


@dataclass(frozen=True, kw_only=True)
class SkimRange(LookRequest[SkimmedFrames]):
    """Describe each of some frames of a long range, and how it bears on `query` (Figure 6b)."""

    Reply = SkimmedFrames
    template: ClassVar[str] = "videoseek_skim"
    query: str


@dataclass(frozen=True, kw_only=True)
class FocusClip(Request[Finding]):
    """The answer to `query` from all that is stored of a short clip, in full size (Figure 6c)."""

    Reply = Finding
    template: ClassVar[str] = "videoseek_focus"
    role: ClassVar[str] = "vision"
    full_size: ClassVar[bool] = True
    temperature: ClassVar[float] = 1.0
    videos: tuple[Video, ...]
    segment: Segment
    query: str
    subtitles: tuple[Note, ...]
    frames: tuple[ShownFrame, ...]

    def check(self, reply: Finding) -> None:
        if reply.found and is_blank(reply.answer):
            raise InvalidReply("the answer is empty; say what was found, or that nothing was")
        check_not_refused(reply.answer)
        if reply.frames:
            check_numbers("frame", sorted(set(reply.frames)), citation_numbers(self.frames)[0])


@rule.register(OverviewVideo)
def _overview_by_rule(request: OverviewVideo | SkimRange, environment: Environment) -> dict[str, Any]:
    texts = describe_each(environment, request.frames)
    return {"frames": [{"frame": at, "description": text} for at, text in enumerate(texts, 1)]}


@rule.register(SkimRange)
def _skim_by_rule(request: SkimRange, environment: Environment) -> dict[str, Any]:
    described = _overview_by_rule(request, environment)["frames"]
    texts = [each["description"] for each in described]
    relevant = [text if is_relevant(request.query, text) else None for text in texts]
    return {"frames": [{**each, "relevant": why} for each, why in zip(described, relevant, strict=True)]}


@rule.register(FocusClip)
def _focus_by_rule(request: FocusClip, environment: Environment) -> dict[str, Any]:
    texts = enumerate(describe_each(environment, request.frames), 1)
    relevant = {at: text for at, text in texts if is_relevant(request.query, text)}
    answer = "; then ".join(dict.fromkeys(relevant.values()))
    return {"found": bool(relevant), "answer": answer, "frames": list(relevant)}


# Requests of the steps: a thought, a call of one tool, and one for each tool (supplement, Figures 4 to 8).

STEP = "Step {step} of {steps}."
THINK = " Think, in plain words: what do the notes show, is it enough, and if not, what next?"
ACT = (
    "Call exactly one tool now. If you have no tools that you can call, write the call as JSON only: "
    '{"tool": <its name>, <its arguments>}'
)
LAST = "The search is over, this is the last step. Call the tool answer now, with what the notes support"
OR_NOTHING = "; if they show nothing that bears on the question, the evidence is not sufficient"
BLANK: Mapping[str, object] = {
    **dict.fromkeys(("video", "start_s", "end_s", "query", "option", "answer")),
    "sufficient": True,
    "evidence": [],
}
NOTHING = (None, "", "null")
SAID = ("option", "answer")
"""Arguments in which "none" may be said in earnest: how many boats there are."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the tools for one scale factor alpha (supplement, A.2)."""

    alpha: int

    @property
    def overview_frames(self) -> int:
        return 16 * self.alpha

    @property
    def skim_frames(self) -> int:
        return 4 * self.alpha

    skim_least_s = focus_most_s = skim_frames
    """One frame a second: as many seconds as frames."""


class Overview(BaseModel):
    """Look at the whole video coarsely: frames spread over all of it, each described. For a first impression."""

    tool: Literal["overview"]
    video: str | None


class Skim(BaseModel):
    """Scan a long range of the video for what the query names. To find the moments that matter."""

    tool: Literal["skim"]
    video: str | None
    start_s: Seconds
    end_s: Seconds
    query: str


class Focus(BaseModel):
    """Inspect a short clip, frame by frame and in full size, to answer the query. To verify details."""

    tool: Literal["focus"]
    video: str | None
    start_s: Seconds
    end_s: Seconds
    query: str


class Finish(BaseModel):
    """Give the final answer and the numbers of the notes it rests on, or say that the evidence is not sufficient."""

    tool: Literal["answer"]
    sufficient: bool
    option: str | None
    answer: str | None
    evidence: Numbers


TOOLS = (Overview, Skim, Focus, Finish)
"""Offered with every request of the conversation, also where none or only `answer` is to be called."""


class Thought(Reply):
    """The reasoning of the agent before it acts, in its own words."""

    model_config = described("What the agent thinks before it acts, in its own words.")

    text: str

    @classmethod
    def from_text(cls, text: str) -> Self:
        return cls(text=after_thought(text))


class _Call(Reply):
    tool: Literal["overview", "skim", "focus", "answer"]
    video: str | None
    start_s: Seconds | None
    end_s: Seconds | None
    query: str | None
    sufficient: bool
    """True if the evidence suffices for the answer."""


class Action(Answered, _Call):
    """A call of one of the four tools; what the tool does not take is null."""

    @property
    def declines(self) -> bool:
        return self.tool == "answer" and not self.sufficient

    @model_validator(mode="before")
    @classmethod
    def _accept(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        given = {name: each for name, each in value.items() if each not in NOTHING}
        return {**BLANK, **{name: each for name, each in given.items() if name in SAID or not says_nothing(each)}}


class FinalAnswer(Conclusion):
    """The call of the tool answer, when no other is left."""

    @model_validator(mode="before")
    @classmethod
    def _read_call(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        if value.get("tool", "answer") != "answer":
            raise ValueError("the search is over; call answer")
        sufficient = value.get("sufficient")
        enough = says_nothing(sufficient) or TypeAdapter(bool).validate_python(sufficient)
        return value if enough else {**value, "action": "insufficient_evidence"}


@dataclass(frozen=True, kw_only=True)
class SeekRequest(WithChapters, Request[R]):
    """A request of the conversation, whose `turns` are the steps so far.

    `known` is what is known at the beginning: the subtitles of the whole video (none if there are several videos).
    """

    role: ClassVar[str] = "policy"
    tools: ClassVar[tuple[type[BaseModel], ...]] = TOOLS
    temperature: ClassVar[float] = 1.0
    question: Question
    videos: tuple[Video, ...]
    known: tuple[Note, ...]
    limits: Limits
    steps: int
    turns: tuple[Turn, ...] = ()
    declining: Declining = field(default="allowed", metadata=LATER)


@dataclass(frozen=True, kw_only=True)
class Think(SeekRequest[Thought]):
    """Think about the notes: is it enough, and if not, what next."""

    Reply = Thought
    template: ClassVar[str] = "videoseek"
    form: ClassVar[Literal["json", "text", "tools"]] = "text"
    tool_choice: ClassVar[str] = "none"
    any_text: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True)
class AnswerNow(AnswerNotes):
    """The same conversation, ended by the answer; `notes` are all that were taken, and `evidence` counts them."""

    Reply = FinalAnswer
    template: ClassVar[str] = "videoseek"
    form: ClassVar[Literal["json", "text", "tools"]] = "tools"
    tools: ClassVar[tuple[type[BaseModel], ...]] = TOOLS
    tool_choice: ClassVar[str] = "answer"
    temperature: ClassVar[float] = 1.0
    known: tuple[Note, ...]
    limits: Limits
    steps: int
    turns: tuple[Turn, ...]

    def schema(self, *, reasoning: bool = True) -> Schema:
        sufficient = {} if self.declining == "allowed" else {"sufficient": {"type": "boolean", "enum": [True]}}
        return bound_schema(strict_schema(Finish), {**letters(self.question), **sufficient})


@dataclass(frozen=True, kw_only=True)
class Act(SeekRequest[Action]):
    """The call of a tool that carries out the thought at the end of `turns`.

    A range that the tool does not take is no invalid reply: the tool itself says so.
    """

    Reply = Action
    template: ClassVar[str] = "videoseek"
    form: ClassVar[Literal["json", "text", "tools"]] = "tools"

    @property
    def instead(self) -> str:
        return "call overview, skim or focus, or answer with what the notes support best"

    def bounds(self) -> Bounds:
        return letters(self.question)

    def check(self, reply: Action) -> None:
        if reply.tool == "answer" and reply.sufficient:
            check_answer(self.question, reply)
        if reply.tool in ("skim", "focus"):
            if reply.start_s is None or reply.end_s is None:
                raise InvalidReply(f"{reply.tool} needs start_s and end_s, in seconds")
            if not (reply.query or "").strip():
                raise InvalidReply(f"{reply.tool} needs a query; say what to look for")


def arguments(action: Action) -> dict[str, object]:
    [tool] = [each for each in Act.tools if get_args(each.model_fields["tool"].annotation) == (action.tool,)]
    return {name: getattr(action, name) for name in tool.model_fields if name != "tool"}


def numbered(notes: Sequence[Note], first: int, videos: Sequence[Video]) -> str:
    """Notes as the prompts show them, one a line, with their numbers from `first`."""

    def line(number: int, note: Note) -> str:
        where = f" of video {note.video_id[:VIDEO_ID_LENGTH]}" if len(videos) > 1 else ""
        return f"{number}. {note.start_s:.1f} s to {note.end_s:.1f} s{where} ({note.source}): {note.text}"

    return "\n".join(line(number, note) for number, note in enumerate(notes, start=first))
