"""Requests of LongVideoAgent (arXiv 2512.20618, section 3.1): to its master, its grounding agent and its vision agent.

How the master writes its turns is in `agent.variants.longvideoagent.action_parser`.
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self, TypeVar

from pydantic import Field, ValidationError, model_validator

from agent.core.answer_rules import Declining
from agent.core.protocol import Reasoned, Reply, Request, ShownFrame, Turn, described
from agent.core.question import LATER, Question, Video
from agent.core.reply_schema import Bounds
from agent.core.reply_values import Numbers
from agent.errors import InvalidReply
from agent.requests.answer import Answered, AnswerNotes, Conclusion, check_answer
from agent.requests.chapters import WithChapters
from agent.requests.refusals import check_not_refused
from agent.variants.longvideoagent.action_parser import ENDS, action_values


@dataclass(frozen=True, slots=True)
class Clip:
    """The range [start_s, end_s) of a video under a tag, <clip_N>, and its words.

    `number` counts from 1 through all videos of a question; `source` of `text` is "transcript" or "captions".
    """

    number: int
    video_id: str
    start_s: float
    end_s: float
    text: str = ""
    source: str = ""
    seen: str = field(default="", metadata=LATER)
    """Captions of the times in which nobody speaks."""
    written: str = field(default="", metadata=LATER)
    """Text that stands on screen."""

    @property
    def has_words(self) -> bool:
        """True if any words are known of it."""
        return bool(self.text or self.written)

    @property
    def words(self) -> str:
        """Its words with their source: said, on screen or seen."""
        said = f'said: "{self.text}"' if self.text and self.source == "transcript" else ""
        seen = self.seen if said else self.text
        kinds = (said, f'on screen: "{self.written}"' if self.written else "", f"seen: {seen}" if seen else "")
        return " ".join(filter(None, kinds)) or "no words are known of it"


A = TypeVar("A", bound=Reply)


class _Turn(Reasoned):
    action: Literal["visual_query", "request_grounding", "answer", "insufficient_evidence"]
    query: str


class Action(Answered, _Turn):
    """One turn of the master; `query` is what to look for, or what to find."""

    @property
    def acts(self) -> bool:
        """True if there is something to do; if not, it ends the run."""
        return self.action in ("visual_query", "request_grounding")

    @model_validator(mode="before")
    @classmethod
    def _accept(cls, value: object) -> object:
        return action_values(value)

    @classmethod
    def from_text(cls, text: str) -> Self:
        return _validated(cls, text)


class LastAction(Conclusion):
    """The master's last turn, which can only be an answer."""

    @model_validator(mode="before")
    @classmethod
    def _accept(cls, value: object) -> object:
        values = action_values(value)
        if isinstance(values, Mapping) and values["action"] in ("visual_query", "request_grounding"):
            raise ValueError("the turns are used up; answer now, as <answer>...</answer>")
        return values

    @classmethod
    def from_text(cls, text: str) -> Self:
        return _validated(cls, text)


def _validated(kind: type[A], text: str) -> A:
    try:
        return kind.model_validate(text)
    except ValidationError as error:
        raise InvalidReply(error.errors()[0]["msg"].removeprefix("Value error, ")) from error


@dataclass(frozen=True, kw_only=True)
class ChooseAction(WithChapters, Request[Action]):
    """The next action of the master, who reads and never sees: the words of `clips`, then `turns`."""

    Reply = Action
    template: ClassVar[str] = "choose_action"
    role: ClassVar[str] = "policy"
    temperature: ClassVar[float] = 0.6
    form: ClassVar[Literal["json", "text", "tools"]] = "text"
    stop: ClassVar[tuple[str, ...]] = ENDS
    question: Question
    videos: tuple[Video, ...]
    clips: tuple[Clip, ...]
    steps: int
    """Turns in all: K."""
    vision: bool = True
    """True if there is a vision agent (Table 4a)."""
    turns: tuple[Turn, ...] = ()
    declining: Declining = field(default="allowed", metadata=LATER)

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
    clips: tuple[Clip, ...]
    steps: int
    vision: bool = True
    turns: tuple[Turn, ...] = ()

    def pattern(self) -> str:
        return turn_pattern(self.question, ())


def turn_pattern(question: Question, looks: Sequence[str]) -> str:
    """A regular expression of a turn: its thoughts, then one of the actions `looks`, or an answer."""
    letters = string.ascii_uppercase[: len(question.options)]
    answer = f"[{letters}]" if letters else "[^<>]{1,160}"
    actions = [*(f"<{name}>[^<>]{{1,160}}</{name}>" for name in looks), f"<answer>{answer}</answer>"]
    return rf"<think>[^<>]{{1,240}}</think>\n?({'|'.join(actions)})"


class Located(Reasoned):
    """The clips that a question is about, in order; none if the words do not tell."""

    clips: Numbers = Field(description="numbers of the chosen clips")

    @model_validator(mode="before")
    @classmethod
    def _accept(cls, value: object) -> object:
        return value if isinstance(value, dict) else {"clips": value}


@dataclass(frozen=True, kw_only=True)
class LocateClips(Request[Located]):
    """Locate the clips that the question is about: at most `window` consecutive ones of `clips`, by their words.

    `wish` is what the master asked for; `visited` are the numbers of clips located before.
    """

    Reply = Located
    template: ClassVar[str] = "locate_clips"
    role: ClassVar[str] = "grounding"
    temperature: ClassVar[float] = 0.6
    question: Question
    videos: tuple[Video, ...]
    clips: tuple[Clip, ...]
    window: int
    wish: str = ""
    visited: tuple[int, ...] = ()

    def bounds(self) -> Bounds:
        return {"clips": {"maxItems": self.window}}

    def example(self) -> Mapping[str, Any]:
        clips = [self.clips[0].number] if self.clips else []
        return {"reasoning": "There the commentator shouts that the ball went past the goal.", "clips": clips}

    def check(self, reply: Located) -> None:
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

    @model_validator(mode="before")
    @classmethod
    def _accept(cls, value: object) -> object:
        return {"observation": value} if isinstance(value, str) else value


@dataclass(frozen=True, kw_only=True)
class ReadFrames(Request[Observation]):
    """Describe what the master looks for in `frames` of consecutive `clips`."""

    Reply = Observation
    template: ClassVar[str] = "read_frames"
    role: ClassVar[str] = "vision"
    temperature: ClassVar[float] = 0.0
    query: str
    clips: tuple[Clip, ...]
    frames: tuple[ShownFrame, ...]

    def example(self) -> Mapping[str, Any]:
        return {"observation": "A boy in a red shirt kicks the ball. It is not seen where the ball comes to lie."}

    def check(self, reply: Observation) -> None:
        if not reply.observation.strip():
            raise InvalidReply("the observation is empty; say what the frames show of what is asked")
        check_not_refused(reply.observation)
