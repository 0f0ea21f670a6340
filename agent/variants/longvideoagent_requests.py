"""Requests of LongVideoAgent (arXiv 2512.20618, section 3.1): to its master, its grounding agent and its vision agent.

How the master writes its turns is said before their parser, below.
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self, TypeVar

from pydantic import Field, ValidationError, model_validator

from kinodex.agent.environment import Environment
from kinodex.agent.errors import InvalidReply
from kinodex.agent.models.rules import MIN_BEARING, cloze_statements, describe, rule, word_share
from kinodex.agent.protocol import (
    LATER,
    Declining,
    Question,
    Reasoned,
    Reply,
    Request,
    ShownFrame,
    Turn,
    Video,
    described,
)
from kinodex.agent.replies import Bounds, Numbers, flat_call, says_nothing
from kinodex.agent.requests.answer import (
    Answered,
    AnswerNotes,
    Conclusion,
    WithChapters,
    check_answer,
    check_not_refused,
)

# Parse the turns of a LongVideoAgent master: one action as a tag of Algorithm 1, after its thoughts.
#
#     <think>...</think><visual_query>what to look for</visual_query>
#     <think>...</think><request_grounding>what to find</request_grounding>
#     <think>...</think><answer>B</answer>
#
# Read besides: `<watch>` (section 3.1) and `<search>` (the published code) for a visual query, `<reasoning>` (the
# published code) for thinking, `<request_grounding>` without an end (Tables 1 and 3), and a JSON object that says the
# same, `{"action": "visual_query", "query": "..."}`. A turn ends with its action's closing tag, as Algorithm 1 ends it:
# what a model that cannot be stopped writes after it is not read. No action, or another one before that, is malformed,
# and so is thinking within an action. Where a chat template has opened the thinking, a turn begins inside it, without
# `<think>`.

ACTIONS = {
    "visual_query": "visual_query",
    "watch": "visual_query",
    "search": "visual_query",
    "request_grounding": "request_grounding",
    "answer": "answer",
    "insufficient_evidence": "insufficient_evidence",
}
ENDS = ("</visual_query>", "</request_grounding>", "</answer>")
AROUND = " \t\r\n.,;:!?\"'"
NOT_ONE = (
    "it does not hold exactly one action; write one <visual_query>...</visual_query>, "
    "<request_grounding>...</request_grounding> or <answer>...</answer>"
)

_OPENING = re.compile(r"<(visual_query|watch|search|request_grounding|answer)\s*/?>", re.IGNORECASE)
_ENDING = re.compile(r"</(visual_query|watch|search|request_grounding|answer)>", re.IGNORECASE)
_THINKING = re.compile(r"<(?:think|reasoning)>", re.IGNORECASE)
_ALOUD = r"(?:(?!<(?:think|reasoning)>).)*?</(?:think|reasoning)>"
_OPEN = r"<(?:think|reasoning)>"
_THOUGHT = re.compile(rf"\s*(?:{_OPEN})?{_ALOUD}(?:\s*{_OPEN}{_ALOUD})*", re.IGNORECASE | re.DOTALL)
_BARE_INDEX = re.compile(r"^a(\d)$", re.IGNORECASE)
_INDEX = re.compile(r"^a\d+\s*[:.)]\s*(?=\S)", re.IGNORECASE)


def thought(text: str) -> str:
    thoughts = _aloud(text)
    opening = _OPENING.search(text, len(thoughts))
    thoughts += text[len(thoughts) : opening.start() if opening else len(text)]
    return re.sub(r"</?(?:think|reasoning)>", "", thoughts, flags=re.IGNORECASE).strip()


def until_action(text: str) -> str:
    """A turn up to the end of its action: there Algorithm 1 stops generating (line 8), which not every model can."""
    end = _ENDING.search(text, len(_aloud(text)))
    return text[: end.end()] if end else text


def action_values(value: object) -> object:
    """An action as JSON values, `{"action", "query", "option", "answer", "evidence"}`, from a turn's text or from JSON.

    Raises `ValueError` saying in one line what is wrong; what is no object comes back as it is.
    """
    if isinstance(value, str):
        text = value[len(_aloud(value)) :].strip()
        value = _object(text) or _tagged(until_action(text))
    value = flat_call(value)
    if not isinstance(value, Mapping):
        return value
    values = {str(name).casefold(): each for name, each in value.items() if each is not None}
    if "action" not in values and "tool" in values:
        values["action"] = values["tool"]
    if "action" not in values:
        named = [name for name in values if name in ACTIONS]
        values = {"query": values[named[0]], **values, "action": named[0]} if len(named) == 1 else values
    if (name := str(values.get("action", "")).casefold()) not in ACTIONS:
        raise ValueError(NOT_ONE)
    values["action"] = ACTIONS[name]
    if values["action"] == "answer":
        values |= _answer(str(values.get("answer", values.get("option", ""))), values.get("option"))
    return {"query": "", "option": None, "answer": None, **values, "evidence": []}


def _aloud(text: str) -> str:
    found = _THOUGHT.match(text)
    return found[0] if found else ""


def _object(text: str) -> Mapping[str, object] | None:
    try:
        value = json.loads(text.removeprefix("```json").strip("`").strip())
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _tagged(text: str) -> dict[str, object]:
    if _THINKING.match(text):
        raise ValueError("the thinking has no end; close it with </think> before the action")
    if _THINKING.search(text):
        raise ValueError("it thinks within an action; think before the action, and take one")
    openings = list(_OPENING.finditer(text))
    if len(openings) != 1:
        raise ValueError(NOT_ONE)
    name = openings[0][1].casefold()
    if re.match(r"\s*(?:\.\.\.|…)\s*</", text[openings[0].end() :]):
        raise ValueError("it repeats the form; write your own words in the place of the dots")
    inside, end, _ = text[openings[0].end() :].partition(f"</{openings[0][1]}>")
    if name == "request_grounding":
        return {"action": name, "query": inside if end else ""}
    if not end:
        raise ValueError(f"<{name}> has no end; close it with </{name}>")
    return {"action": name, "answer" if name == "answer" else "query": inside}


def _answer(text: str, option: object) -> dict[str, object]:
    """The answer without spaces and punctuation around it (line 21), and the option that it names.

    The options of TVQA are a0 to a4. In "a3: a bus stop" the words after the index name the option; "a3" alone is
    the fourth, D.
    """
    text = text.strip(AROUND)
    if re.sub(r"[\s_-]+", " ", text.casefold()) == "insufficient evidence":
        return {"action": "insufficient_evidence", "query": ""}
    if bare := _BARE_INDEX.match(text):
        letter = string.ascii_uppercase[int(bare[1])]
        if not says_nothing(option) and str(option).strip(AROUND).upper() not in (letter, text.upper()):
            raise ValueError(f"option {option!r} and answer {text!r} do not say the same")
        return {"answer": text, "option": letter, "query": ""}
    return {"answer": text, "option": option or _INDEX.sub("", text), "query": ""}


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
    counted: bool = field(default=True, metadata=LATER)
    """The number of each turn is said."""

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
    counted: bool = field(default=True, metadata=LATER)

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

    def check(self, reply: Observation) -> None:
        if not reply.observation.strip():
            raise InvalidReply("the observation is empty; say what the frames show of what is asked")
        check_not_refused(reply.observation)


@rule.register(LocateClips)
def _locate_by_rule(request: LocateClips, environment: Environment) -> dict[str, Any]:
    """Find the unvisited clip whose words hold most of the wish or question; none if they hold too little."""
    queries = [request.wish] if request.wish else list(cloze_statements(request.question).queries)
    left = [clip for clip in request.clips if clip.number not in request.visited]
    words = {clip.number: f"{clip.text} {clip.seen} {clip.written}" for clip in left}
    shares = [(max((word_share(text, words[at]) for text in queries), default=0.0), -at) for at in words]
    best, number = max(shares, default=(0.0, 0))
    return {"clips": [-number] if best >= MIN_BEARING else []}


@rule.register(ReadFrames)
def _read_by_rule(request: ReadFrames, environment: Environment) -> dict[str, Any]:
    return {"observation": describe(environment, request.frames).text}
