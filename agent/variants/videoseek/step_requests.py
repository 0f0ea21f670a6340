"""Requests of the steps: a thought, a call of one tool, and one for each tool (supplement, Figures 4 to 8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Self, get_args

from pydantic import BaseModel, TypeAdapter, model_validator

from kinodex.agent.answer_rules import Declining
from kinodex.agent.errors import InvalidReply
from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.reply import R, Reply, after_thought, described
from kinodex.agent.protocol.request import Turn
from kinodex.agent.protocol.videos import VIDEO_ID_LENGTH, Video
from kinodex.agent.replies.schema import Bounds, Schema, bound_schema, strict_schema
from kinodex.agent.replies.values import Numbers, Seconds, says_nothing
from kinodex.agent.requests.answer import Answered, AnswerNotes, Conclusion, check_answer, letters
from kinodex.agent.requests.run_request import RunRequest

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
class SeekRequest(RunRequest[R]):
    """A request of the conversation, whose `turns` are the steps so far.

    `known` is what is known at the beginning: the subtitles of the whole video (none if there are several videos).
    """

    tools: ClassVar[tuple[type[BaseModel], ...]] = TOOLS
    temperature: ClassVar[float] = 1.0
    known: tuple[Note, ...]
    limits: Limits
    steps: int
    turns: tuple[Turn, ...] = ()
    declining: Declining = "allowed"


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
        return f"{number}. {note.start_s:.1f} s to {note.end_s:.1f} s{where} ({note.quoted}): {note.text}"

    return "\n".join(line(number, note) for number, note in enumerate(notes, start=first))
