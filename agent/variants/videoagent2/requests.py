"""Requests of VideoAgent2 (section 3 and appendix B): assessments, plans, captions of frames.

The memory bank B_t of the paper is `summaries` and `notes`: captions of consecutive parts first, then what the tools
returned, numbered together from 1. `Assess.number` and `Toolbox.calls_left` tell the requests of one run apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, get_args

from pydantic import BeforeValidator, Field, FiniteFloat, model_validator

from kinodex.agent.errors import InvalidReply
from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.reply import STEP_BY_STEP_TOKENS, R, Reasoned, Reply, described, read_alone, read_as
from kinodex.agent.protocol.videos import Video, named_video
from kinodex.agent.replies.calls import flat_call
from kinodex.agent.replies.schema import NULL, Bounds, Schema, one_of, without_reasoning
from kinodex.agent.replies.values import Confidence, Seconds, WholeNumber, on_scale, says_nothing
from kinodex.agent.requests.answer import Answered, AnswerNotes, check_answer, letters
from kinodex.agent.requests.in_parts import InParts
from kinodex.agent.requests.refusals import check_not_refused
from kinodex.agent.requests.run_request import RunRequest
from kinodex.index.nesting import parse_json

MOST_CONFIDENT = 5
"""The upper end of the scale of an answer's confidence; 0 is no answer."""
BLANK: Mapping[str, object] = {}
Tool = Literal["caption", "detect", "zoom_caption", "zoom_detect", "track"]


def _level(value: object) -> object:
    """Return a confidence from 0 to 5: 4 for "4/5" or "80%"; a bare 80 is out of scale."""
    return on_scale(value, float(MOST_CONFIDENT))


def _listed(value: object) -> object:
    try:
        return parse_json(value) if isinstance(value, str) else value
    except ValueError:
        return value


class Assessment(Answered, Reasoned):
    """The answer A_t that the bank gives, and its confidence cf_t from 1 to 5; 0: the bank does not hold enough."""

    confidence: Annotated[float, Field(ge=0, le=MOST_CONFIDENT, allow_inf_nan=False), BeforeValidator(_level)] = Field(
        description="how sure you are of the answer, 0 if there is none"
    )

    _complete = read_as(lambda value: _given(value, {"option": None, "answer": None, "evidence": []}))


class ToolCall(Reply):
    """One tool and what it is to look at; `box` is x0, y0, x1, y1 as parts of a frame's width and height."""

    tool: Tool = Field(description="the tool to call")
    video: str | None = Field(description="id of the video")
    start_s: Seconds = Field(description="seconds")
    end_s: Seconds | None = Field(description="seconds, or null for one frame")
    box: Annotated[list[FiniteFloat] | None, BeforeValidator(_listed)] = Field(description="[x0, y0, x1, y1], or null")
    label: str | None = Field(description="the thing, or null")

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, value: object) -> object:
        call = flat_call(value)
        said = (
            {key: each for key, each in call.items() if not says_nothing(each)} if isinstance(call, Mapping) else call
        )
        return _given(said, {"video": None, "end_s": None, "box": None, "label": None})


class Plan(Reasoned):
    """The steps P_t, in words, and the tool call of the first one."""

    steps: list[str] = Field(description="what to find out and how, one tool call a step")
    action: ToolCall = Field(description="the tool call of the first step")
    _accept = read_as(lambda value: _given(value))


class Action(Reasoned):
    """A tool call without a plan of its own."""

    action: ToolCall = Field(description="the tool call")
    _accept = read_as(lambda value: _given(value))


class Clause(Reply):
    """A part of a caption that can be right or wrong by itself, and how sure the model is of it, 0 to 1."""

    text: str = Field(description="what is seen")
    confidence: Confidence | None = Field(default=None, description="how sure you are of it")


class FrameCaption(Reply):
    """The caption of one of the shown frames (1 is the first)."""

    model_config = described("What one of the shown frames (1 is the first) shows.")

    frame: WholeNumber = Field(description="its number")
    clauses: list[Clause] = Field(description="its sentences and clauses")


class FrameCaptions(Reply):
    """A caption for each frame."""

    captions: list[FrameCaption] = Field(description="one for each frame")
    _accept = read_alone("captions", list)


def _given(value: object, blank: Mapping[str, object] = BLANK) -> object:
    """Return an object's values in place of those of `blank`; anything else as it is."""
    if not isinstance(value, Mapping):
        return value
    return {**blank, **{str(key).casefold(): each for key, each in value.items() if each is not None}}


@dataclass(frozen=True, slots=True)
class Toolbox:
    """Limits of the tools: frames in one call, and in one call of "track"; and if their notes carry confidences."""

    calls_left: int
    frames: int
    track_frames: int
    confidence: bool
    labels: tuple[str, ...] = ()
    """Labels that the library's detections know, the most frequent first."""


@dataclass(frozen=True, kw_only=True)
class BankRequest(RunRequest[R]):
    """A request about the bank: the first `bank` of the `notes` are its captions, the others came one by one.

    Their prompts begin alike, so that a server's prefix cache holds the bank for all requests of a run, and for other
    questions about the same videos.
    """

    summaries: tuple[Note, ...]
    notes: tuple[Note, ...]
    bank: int = 0
    reply_tokens: ClassVar[int] = STEP_BY_STEP_TOKENS


@dataclass(frozen=True, kw_only=True)
class AnswerBank(AnswerNotes):
    """The last word: the best answer that the bank gives."""

    template: ClassVar[str] = "videoagent2_answer"
    summaries: tuple[Note, ...]
    bank: int = 0


@dataclass(frozen=True, kw_only=True)
class Assess(BankRequest[Assessment]):
    """Answer from the bank and say how sure the answer is (section 3.2); without `reasoning`, straight away."""

    Reply = Assessment
    template: ClassVar[str] = "videoagent2_assess"
    number: int
    reasoning: bool = True
    doubt: str = ""
    """Why the answer before was not confirmed."""

    def schema(self, *, reasoning: bool = True) -> Schema:
        schema = super().schema(reasoning=reasoning)
        return schema if self.reasoning else without_reasoning(schema)

    def bounds(self) -> Bounds:
        return {**letters(self.question), "evidence": {"description": "numbers of the notes that it rests on"}}

    def check(self, reply: Assessment) -> None:
        if reply.confidence > 0:
            check_answer(self.question, reply)


@dataclass(frozen=True, kw_only=True)
class PlanRequest(BankRequest[Plan]):
    """A plan, and the call of its first step, after an assessment that was not sure enough."""

    Reply = Plan
    doubt: str
    """What the assessment thought."""
    toolbox: Toolbox

    def bounds(self) -> Bounds:
        return {"steps": {"minItems": 1}, **call_bounds(self.videos)}

    def check(self, reply: Plan) -> None:
        if not reply.steps or not all(step.strip() for step in reply.steps):
            raise InvalidReply(
                "the plan has no step, or an empty one; say in a few words what each step is to find out"
            )
        check_call(reply.action, self.videos)


@dataclass(frozen=True, kw_only=True)
class CreatePlan(PlanRequest):
    """Plan how to find what the bank lacks, and call the first tool (section 3.3, action 1)."""

    template: ClassVar[str] = "videoagent2_create_plan"


@dataclass(frozen=True, kw_only=True)
class AdjustPlan(PlanRequest):
    """Change the `plan` by what was found and how sure that is, and call the next tool (section 3.3, action 2)."""

    template: ClassVar[str] = "videoagent2_adjust_plan"
    plan: tuple[str, ...]
    confidence: float
    """That of the answer so far, 0 to 5."""


@dataclass(frozen=True, kw_only=True)
class CallTool(BankRequest[Action]):
    """Call a tool for `step` of a plan that stays as it is; with no plan, whichever seems useful (section 4.5)."""

    Reply = Action
    template: ClassVar[str] = "videoagent2_call_tool"
    plan: tuple[str, ...] = ()
    step: int = 0
    """Which of the plan, from 1."""
    toolbox: Toolbox

    def bounds(self) -> Bounds:
        return call_bounds(self.videos)

    def check(self, reply: Action) -> None:
        check_call(reply.action, self.videos)


@dataclass(frozen=True, kw_only=True)
class CaptionFrames(InParts[FrameCaptions]):
    """Say what each of `frames` shows, with a confidence for each clause (appendix A.1).

    `box` is the part of a frame that its picture shows, if it was enlarged.
    """

    Reply = FrameCaptions
    template: ClassVar[str] = "videoagent2_caption"
    role: ClassVar[str] = "vision"
    parts: ClassVar[tuple[str, str, str]] = ("frames", "captions", "frame")
    frames: tuple[ShownFrame, ...]
    box: tuple[float, float, float, float] | None = None
    confidence: bool = True

    def bounds(self) -> Bounds:
        sure = {"type": "number", "minimum": 0, "maximum": 1} if self.confidence else NULL
        return {**super().bounds(), "captions.clauses": {"minItems": 1}, "captions.clauses.confidence": sure}

    def check(self, reply: FrameCaptions) -> None:
        super().check(reply)
        clauses = [clause for each in reply.captions for clause in each.clauses]
        if not all(each.clauses for each in reply.captions) or not all(clause.text.strip() for clause in clauses):
            raise InvalidReply("a caption or a clause is empty; say what is seen")
        for clause in clauses:
            check_not_refused(clause.text)
        if self.confidence and any(clause.confidence is None for clause in clauses):
            raise InvalidReply("a clause has no confidence; give each one a number from 0 to 1")


def call_bounds(videos: Sequence[Video]) -> Bounds:
    """Bind a tool call to the tools that see something of these videos, and to the only video."""
    pictured = any(video.has_pictures for video in videos)
    tools = {"action.tool": one_of(get_args(Tool) if pictured else ("caption",))}
    return {**tools, "action.video": NULL} if len(videos) == 1 else tools


def check_call(call: ToolCall, videos: Sequence[Video]) -> None:
    """Raise `InvalidReply` for a call that cannot be done: of no video, outside of it, without its box or label."""
    video = named_video(videos, call.video)
    if not video.has_pictures and call.tool != "caption":
        raise InvalidReply(f"only words are known of the video, so {call.tool} has no frame to look at; call caption")
    if not video.start_s <= call.start_s < video.end_s:
        inside = f"from {video.start_s:.1f} s to {video.end_s:.1f} s"
        raise InvalidReply(f"start_s {call.start_s:g} is outside the video, which goes {inside}")
    if call.end_s is not None and call.end_s < call.start_s:
        raise InvalidReply(f"end_s {call.end_s:g} is before start_s {call.start_s:g}")
    x0, y0, x1, y1 = call.box if call.box and len(call.box) == 4 else (0, 0, 0, 0)
    if call.tool.startswith("zoom") and not (0 <= x0 < x1 <= 1 and 0 <= y0 < y1 <= 1):
        raise InvalidReply(f"{call.tool} needs a box [x0, y0, x1, y1] with 0 <= x0 < x1 <= 1 and 0 <= y0 < y1 <= 1")
    if call.tool == "track" and not (call.label or "").strip():
        raise InvalidReply("track needs a label, the thing to follow")
