"""Requests of LongVideoAgent: of the master, the grounding agent and the vision agent."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from pydantic import Field, ValidationError, model_validator

from kinodex.agent.answer_rules import Declining
from kinodex.agent.errors import InvalidReply
from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.reply import STEP_BY_STEP_TOKENS, Reasoned, Reply, described, read_alone, read_as
from kinodex.agent.protocol.request import Request, Turn
from kinodex.agent.protocol.videos import Video
from kinodex.agent.replies.schema import Bounds
from kinodex.agent.replies.values import Numbers
from kinodex.agent.requests.answer import Answered, AnswerNotes, Conclusion, check_answer
from kinodex.agent.requests.refusals import check_not_refused
from kinodex.agent.requests.run_request import RunRequest
from kinodex.agent.variants.longvideoagent.clips import Clip
from kinodex.agent.variants.longvideoagent.turns import ENDS, action_values


class _Text(Reply):
    @classmethod
    def from_text(cls, text: str) -> Self:
        try:
            return cls.model_validate(text)
        except ValidationError as error:
            raise InvalidReply(error.errors()[0]["msg"].removeprefix("Value error, ")) from error


class _Turn(Reasoned):
    action: Literal["visual_query", "request_grounding", "answer", "insufficient_evidence"]
    query: str


class Action(Answered, _Turn, _Text):
    """One turn of the master; `query` is what to look for, or what to find."""

    _accept = read_as(action_values)

    @property
    def acts(self) -> bool:
        return self.action in ("visual_query", "request_grounding")


class LastAction(Conclusion, _Text):
    """The master's last turn, which can only be an answer."""

    @model_validator(mode="before")
    @classmethod
    def _accept(cls, value: object) -> object:
        values = action_values(value)
        if isinstance(values, Mapping) and values["action"] in ("visual_query", "request_grounding"):
            raise ValueError("the turns are used up; answer now, as <answer>...</answer>")
        return values


@dataclass(frozen=True, kw_only=True)
class ChooseAction(RunRequest[Action]):
    """The next action of the master, who reads and never sees: the words of `clips`, then `turns`."""

    Reply = Action
    template: ClassVar[str] = "choose_action"
    temperature: ClassVar[float] = 0.6
    form: ClassVar[Literal["json", "text", "tools"]] = "text"
    stop: ClassVar[tuple[str, ...]] = ENDS
    reply_tokens: ClassVar[int] = STEP_BY_STEP_TOKENS
    clips: tuple[Clip, ...]
    steps: int
    """Turns in all: K."""
    vision: bool = True
    """True if there is a vision agent (Table 4a)."""
    turns: tuple[Turn, ...] = ()
    declining: Declining = "allowed"

    @property
    def instead(self) -> str:
        return "have another clip located, have the present one looked at, or answer"

    def pattern(self) -> str:
        looks = ("visual_query", "request_grounding") if self.vision else ("request_grounding",)
        return turn_pattern(self.question, looks)

    def check(self, reply: Action) -> None:
        if reply.action == "answer":
            check_answer(self.question, reply)
        elif reply.action == "visual_query" and not self.vision:
            raise InvalidReply("nobody can look here; use <request_grounding> or <answer>")
        elif reply.action == "visual_query" and not reply.query.strip():
            raise InvalidReply("the visual query is empty; say in it what to look for")


@dataclass(frozen=True, kw_only=True)
class AnswerNow(AnswerNotes):
    """The master's last turn: the same conversation, ended by an answer, which rests on `notes`."""

    Reply = LastAction
    template: ClassVar[str] = "choose_action"
    temperature: ClassVar[float] = 0.6
    form: ClassVar[Literal["json", "text", "tools"]] = "text"
    stop: ClassVar[tuple[str, ...]] = ENDS
    reply_tokens: ClassVar[int] = STEP_BY_STEP_TOKENS
    clips: tuple[Clip, ...]
    steps: int
    vision: bool = True
    turns: tuple[Turn, ...] = ()

    def pattern(self) -> str:
        return turn_pattern(self.question, ())


MASTER_REQUESTS = (ChooseAction.__name__, AnswerNow.__name__)


def turn_pattern(question: Question, looks: Sequence[str]) -> str:
    """Return a regular expression of a turn: its thoughts, then one of the actions `looks`, or an answer.

    It binds small models in this process alone, whose thoughts would else fill all tokens.
    """
    letters = string.ascii_uppercase[: len(question.options)]
    answer = f"[{letters}]" if letters else "[^<>]{1,160}"
    actions = [*(f"<{name}>[^<>]{{0,160}}</{name}>" for name in looks), f"<answer>{answer}</answer>"]
    return rf"<think>[^<>]{{1,240}}</think>\n?({'|'.join(actions)})"


class Located(Reasoned):
    """The clips that a question is about, in order."""

    clips: Numbers = Field(description="numbers of the chosen clips")
    _accept = read_alone("clips")


@dataclass(frozen=True, kw_only=True)
class LocateClips(Request[Located]):
    """Locate the clips that the question is about: at most `window` consecutive ones of `clips`, by their subtitles."""

    Reply = Located
    template: ClassVar[str] = "locate_clips"
    role: ClassVar[str] = "grounding"
    temperature: ClassVar[float] = 0.6
    reply_tokens: ClassVar[int] = STEP_BY_STEP_TOKENS
    question: Question
    videos: tuple[Video, ...]
    clips: tuple[Clip, ...]
    window: int

    def bounds(self) -> Bounds:
        return {"clips": {"minItems": 1, "maxItems": self.window}}

    def check(self, reply: Located) -> None:
        if not reply.clips:
            raise InvalidReply("no clip is chosen; give the one that the question is most likely about")
        known = {clip.number: clip.video_id for clip in self.clips}
        for number in reply.clips:
            if number not in known:
                raise InvalidReply(f"there is no <clip_{number}>; the clips are <clip_1> to <clip_{len(known)}>")
        if len(reply.clips) > self.window:
            raise InvalidReply(f"{len(reply.clips)} clips are too many; give at most {self.window}")
        following = all(number == reply.clips[0] + at for at, number in enumerate(reply.clips))
        if not following or len({known[number] for number in reply.clips}) > 1:
            raise InvalidReply(f"{reply.clips} do not follow each other in one video; give consecutive clips")


class Observation(Reply):
    """The findings of a look, as far as the frames show them."""

    model_config = described("What was looked for, as far as the frames show it.")

    observation: str = Field(description="the sentences")
    _accept = read_alone("observation", str)


@dataclass(frozen=True, kw_only=True)
class ReadFrames(Request[Observation]):
    """Describe what the master looks for in `frames` of [start_s, end_s) of a video."""

    Reply = Observation
    template: ClassVar[str] = "read_frames"
    role: ClassVar[str] = "vision"
    temperature: ClassVar[float] = 0.0
    query: str
    start_s: float
    end_s: float
    frames: tuple[ShownFrame, ...]

    def check(self, reply: Observation) -> None:
        if not reply.observation.strip():
            raise InvalidReply("the observation is empty; say what the frames show of what is asked")
        check_not_refused(reply.observation)
