"""Requests of the steps: a thought and the call of one tool, in one reply (supplement, Figures 4, 5, 7 and 8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from pydantic import BaseModel, Field, TypeAdapter, model_validator

from kinodex.agent.answer_rules import Declining
from kinodex.agent.errors import InvalidReply
from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.reply import STEP_BY_STEP_TOKENS, Reasoned
from kinodex.agent.protocol.request import Turn
from kinodex.agent.protocol.videos import VIDEO_ID_LENGTH, Video
from kinodex.agent.replies.schema import REASONING, Bounds, Schema, bound_schema, strict_schema, without_reasoning
from kinodex.agent.replies.values import Numbers, Seconds, says_nothing
from kinodex.agent.requests.answer import Answered, AnswerNotes, Conclusion, check_answer, letters
from kinodex.agent.requests.run_request import RunRequest

STEP = (
    "Step {step} of {steps}. Go over what is known so far, plan the next action, and call the one tool for it; do not "
    "write what it will find. If you have no tools that you can call, write the call as JSON only: "
    '{{"tool": <its name>, <its arguments>}}'
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


class Call(BaseModel):
    """Call of a tool, after the reasoning that leads to it."""

    reasoning: str = Field(description="the evidence so far with its times, whether it is enough, what is missing")


class Overview(Call):
    """Look at the whole video coarsely: frames spread over all of it, each described. For a first impression."""

    tool: Literal["overview"]
    video: str | None


class Skim(Call):
    """Scan a long range of the video for what the query names. To find the moments that matter."""

    tool: Literal["skim"]
    video: str | None
    start_s: Seconds
    end_s: Seconds
    query: str


class Focus(Call):
    """Inspect a short clip, frame by frame and in full size, to answer the query. To verify details."""

    tool: Literal["focus"]
    video: str | None
    start_s: Seconds
    end_s: Seconds
    query: str


class Finish(Call):
    """Give the final answer and the numbers of the notes it rests on, or say that the evidence is not sufficient."""

    tool: Literal["answer"]
    sufficient: bool
    option: str | None
    answer: str | None
    evidence: Numbers


TOOLS = (Overview, Skim, Focus, Finish)
"""Offered with every request of the conversation, also where only `answer` is to be called."""


class _Call(Reasoned):
    tool: Literal["overview", "skim", "focus", "answer"]
    video: str | None
    start_s: Seconds | None
    end_s: Seconds | None
    query: str | None
    sufficient: bool
    """True if the evidence suffices for the answer."""


class Action(Answered, _Call):
    """A call of one of the four tools, after its reasons; what the tool does not take is null."""

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
class AnswerNow(AnswerNotes):
    """The same conversation, ended by the answer; `notes` are all that were taken, and `evidence` counts them."""

    Reply = FinalAnswer
    template: ClassVar[str] = "videoseek"
    form: ClassVar[Literal["json", "text", "tools"]] = "tools"
    tools: ClassVar[tuple[type[BaseModel], ...]] = TOOLS
    tool_choice: ClassVar[str] = "answer"
    temperature: ClassVar[float] = 1.0
    reply_tokens: ClassVar[int] = STEP_BY_STEP_TOKENS
    known: tuple[Note, ...]
    limits: Limits
    steps: int
    turns: tuple[Turn, ...]

    def schema(self, *, reasoning: bool = True) -> Schema:
        sufficient = {} if self.declining == "allowed" else {"sufficient": {"type": "boolean", "enum": [True]}}
        schema = bound_schema(strict_schema(Finish), {**letters(self.question), **sufficient})
        return schema if reasoning else without_reasoning(schema)


@dataclass(frozen=True, kw_only=True)
class Act(RunRequest[Action]):
    """The next step of the conversation, whose `turns` are the steps so far: a thought, and the call of a tool.

    `known` is what is known at the beginning: the subtitles of the whole video (none if there are several videos). A
    range that the tool does not take is no invalid reply: the tool itself says so.
    """

    Reply = Action
    template: ClassVar[str] = "videoseek"
    form: ClassVar[Literal["json", "text", "tools"]] = "tools"
    tools: ClassVar[tuple[type[BaseModel], ...]] = TOOLS
    temperature: ClassVar[float] = 1.0
    reply_tokens: ClassVar[int] = STEP_BY_STEP_TOKENS
    known: tuple[Note, ...]
    limits: Limits
    steps: int
    turns: tuple[Turn, ...] = ()
    declining: Declining = "allowed"

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
    return {name: getattr(action, name) for name in tool.model_fields if name not in ("tool", REASONING)}


def numbered(notes: Sequence[Note], first: int, videos: Sequence[Video]) -> str:
    """Notes as the prompts show them, one a line, with their numbers from `first`."""

    def line(number: int, note: Note) -> str:
        where = f" of video {note.video_id[:VIDEO_ID_LENGTH]}" if len(videos) > 1 else ""
        return f"{number}. {note.start_s:.1f} s to {note.end_s:.1f} s{where} ({note.quoted}): {note.text}"

    return "\n".join(line(number, note) for number, note in enumerate(notes, start=first))
