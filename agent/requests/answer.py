"""Scenes and chapters as an input of requests: an overview of the videos, which a reply cannot cite."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import Field, model_validator

from kinodex.agent.errors import InvalidReply
from kinodex.agent.protocol import (
    LATER,
    Declining,
    Note,
    Question,
    Reasoned,
    Reply,
    Request,
    ShownFrame,
    Video,
    allowed_actions,
    citation_numbers,
)
from kinodex.agent.replies import NULL, Bounds, Numbers, is_blank, one_of, says_nothing
from kinodex.agent.requests.named_option import lone_letter, named_option, rejected_options
from kinodex.index.text import words as words_of


@dataclass(frozen=True, kw_only=True)
class WithChapters:
    """A request whose prompt lists scenes or chapters of the videos, if a run reads them (`kinodex.agent.tree`)."""

    chapters: tuple[Note, ...] = field(default=(), metadata=LATER)


# Requests for the answer, with which every agent ends, and their replies.
#
# A bare text ("B") is accepted as a reply too (`agent.requests.named_option`).


class Answered(Reply):
    """An answer: the option's letter if there are options, else a text; and the frames it rests on."""

    option: str | None = Field(description="letter of the chosen option, else null")
    answer: str | None = Field(description="the answer in words, else null")
    evidence: Numbers = Field(description="numbers of the frames or notes that show the answer")
    """Numbers of the shown frames (1 is the first) that the answer rests on."""


class _Verdict(Reasoned):
    action: Literal["answer", "insufficient_evidence"] = Field(description="answer, or say that it cannot be seen")


class Conclusion(Answered, _Verdict):
    """An answer from the frames at hand, or that they do not show enough."""

    @model_validator(mode="before")
    @classmethod
    def _accept(cls, value: object) -> object:
        return read_decision(value)


def read_decision(value: object) -> object:
    """Complete a decision in any accepted shape: a text is an answer, missing keys are empty, "none" is no segment.

    One with a segment and an answer, but no action, may be either: its action stays missing.
    """
    if isinstance(value, str) and value.strip():
        value = {"answer": value.strip(), "option": value.strip()}
    if not isinstance(value, Mapping):
        return value
    found = {str(key).casefold(): each for key, each in value.items()}
    if says_nothing(found.get("segment")):
        found.pop("segment", None)
    if "action" not in found and not ("segment" in found and says_answer(found)):
        found["action"] = "explore" if "segment" in found else "answer"
    if isinstance(found.get("action"), str):
        found["action"] = found["action"].strip().casefold()
    blank: dict[str, object] = {"segment": None, "option": None, "answer": None, "evidence": []}
    return blank | {key: each for key, each in found.items() if each is not None}


def says_answer(found: Mapping[str, object]) -> bool:
    """True for JSON values with an option or an answer in words."""
    return not (says_nothing(found.get("option")) and says_nothing(found.get("answer")))


@dataclass(frozen=True, kw_only=True)
class AnswerRequest(Request[Conclusion]):
    """A request for an answer, or for the verdict that the evidence is insufficient."""

    Reply = Conclusion
    question: Question
    videos: tuple[Video, ...]
    declining: Declining = field(default="allowed", metadata=LATER)

    @property
    def actions(self) -> tuple[str, ...]:
        """Actions that are allowed now."""
        return allowed_actions(("answer", "insufficient_evidence"), self.declining)

    def bounds(self) -> Bounds:
        return {"action": one_of(self.actions), **letters(self.question, or_null=len(self.actions) > 1)}

    def example(self) -> Mapping[str, Any]:
        frames, notes = citation_numbers(self.frames, getattr(self, "notes", ()))
        return {"action": "answer", **example_answer(self.question, [*frames, *notes])}

    def check(self, reply: Conclusion) -> None:
        if reply.action == "answer":
            check_answer(self.question, reply)

    def in_words(self, text: str) -> Conclusion | None:
        decision = answer_in_words(self.question, text)
        return None if decision is None else self.Reply.model_validate(decision)


@dataclass(frozen=True, kw_only=True)
class AnswerFrames(AnswerRequest):
    """Answer from `frames`, and `notes` of the words spoken then, in one call.

    `evidence` of the reply counts frames from 1, then notes.
    """

    template: ClassVar[str] = "answer_frames"
    role: ClassVar[str] = "vision"
    frames: tuple[ShownFrame, ...]
    notes: tuple[Note, ...] = field(default=(), metadata=LATER)


@dataclass(frozen=True, kw_only=True)
class AnswerNotes(WithChapters, AnswerRequest):
    """Answer from `notes`, the findings so far in words; `evidence` of the reply counts notes, from 1."""

    template: ClassVar[str] = "answer_notes"
    role: ClassVar[str] = "policy"
    notes: tuple[Note, ...]


@dataclass(frozen=True, kw_only=True)
class Recall(AnswerRequest):
    """Answer a follow-up question from the evidence of earlier questions, if that shows the answer clearly.

    `evidence` of the reply counts frames from 1, then notes.
    """

    template: ClassVar[str] = "recall"
    role: ClassVar[str] = "vision"
    frames: tuple[ShownFrame, ...]
    notes: tuple[Note, ...]


@dataclass(frozen=True, kw_only=True)
class Guess(AnswerRequest):
    """Answer from the question alone: the control that shows which questions need no video."""

    template: ClassVar[str] = "guess"
    role: ClassVar[str] = "policy"


def letters(question: Question, *, or_null: bool = True) -> Bounds:
    """Bind `option` to the letters of a question, which are the same for most questions of a benchmark."""
    if not question.options:
        return {"option": NULL}
    return {"option": one_of([letter for letter, _ in question.lettered], or_null=or_null)}


def cited_frames() -> Mapping[str, object]:
    """Say that evidence cites frames alone."""
    return {"description": "numbers of the frames that show the answer"}


def example_answer(question: Question, numbers: Sequence[int]) -> Mapping[str, Any]:
    """An example of an answer that cites one of the frames or notes with these numbers.

    Its letter differs from question to question: one that were always the same would draw a weak model's answers.
    """
    why = "The ball lies behind the goal in the last frames, and it was in front of it before."
    said: dict[str, str | None] = {"option": None, "answer": "the ball rolls behind the goal"}
    if question.options:
        letter, _ = question.lettered[zlib.crc32(question.text.encode()) % len(question.options)]
        said = {"option": letter, "answer": None}
    return {"reasoning": why, **said, "evidence": [*numbers[:1]]}


def check_answer(question: Question, reply: Answered) -> None:
    """Raise `InvalidReply` unless the reply names one of the options, or says something if there are none.

    Models that are held to a schema write "null" or "N/A" where they have no answer but have to give a text.
    """
    if question.options and chosen_option(question, reply) is None:
        letters = [letter for letter, _ in question.lettered]
        raise InvalidReply(f"{_said(question, reply)}; give a letter from {letters[0]} to {letters[-1]}")
    if not question.options and is_blank(reply.answer):
        said = f"{reply.answer!r} is no answer" if (reply.answer or "").strip() else "the answer is empty"
        raise InvalidReply(f"{said}; say it in a few words")


def _said(question: Question, reply: Answered) -> str:
    """The fault of a reply that names no option."""
    alone = reply.model_copy(update={"answer": None})
    if chosen_option(question, alone) is not None:
        return f"option {reply.option!r} and answer {reply.answer!r} do not say the same"
    return f"{(reply.option or reply.answer)!r} names no option"


def answer_in_words(question: Question, text: str) -> dict[str, object] | None:
    """Decide to answer with the option that a text names, as JSON values; None if it names none for certain."""
    option = named_option(text, question.options)
    return None if option is None else {"action": "answer", "option": question.lettered[option][0], "answer": text}


def chosen_option(question: Question, reply: Answered) -> int | None:
    """Find the index of the option that a reply names, by its letter or its words; None if its parts disagree.

    A letter alone in `option` is one, even if an option's own words are a letter.
    """
    options = question.options
    answer = None if is_blank(reply.answer) else reply.answer
    in_words = None if answer is None else named_option(answer, options)
    if says_nothing(reply.option) and (reply.option is None or named_option(reply.option, options) is None):
        return in_words
    option = reply.option or ""
    letter = lone_letter(option)
    index = letter if letter is not None and letter < len(options) else named_option(option, options)
    if index is None or answer is None or index in (in_words, lone_letter(answer)):
        return index
    return index if in_words is None and index not in rejected_options(answer, options) else None


# Replies in parts, one for each segment or frame: which are missing, and the parts of two replies as one.

P = TypeVar("P", bound=Reply)


def check_numbers(thing: str, numbers: Sequence[int], known: Sequence[int]) -> None:
    """Raise `InvalidReply` for parts of a reply that are of no known number, of one twice, or for none at all."""
    unknown = [number for number in numbers if number not in known]
    if unknown:
        raise InvalidReply(f"there is no {thing} {unknown[0]}; the numbers are {_listed(known)}")
    if len(set(numbers)) < len(numbers):
        raise InvalidReply(f"a {thing} is there twice; give each once")
    if not numbers and known:
        raise InvalidReply(f"no {thing} is there; give one for each of {_listed(known)}")


def _listed(known: Sequence[int]) -> str:
    if len(known) > 2 and list(known) == list(range(known[0], known[0] + len(known))):
        return f"{known[0]} to {known[-1]}"
    return ", ".join(map(str, known))


def missing_positions(known: Iterable[int], numbers: Iterable[int]) -> list[int]:
    """Positions, from 0, of the known numbers that a reply has no part of."""
    there = set(numbers)
    return [at for at, number in enumerate(known) if number not in there]


def missing_frames(frames: Sequence[ShownFrame], numbers: Iterable[int]) -> tuple[ShownFrame, ...]:
    """Frames that a reply has no part of."""
    return tuple(frames[at] for at in missing_positions(citation_numbers(frames)[0], numbers))


def join_parts(
    name: str, first: Sequence[P], rest: Sequence[P], known: Sequence[int], rest_known: Sequence[int]
) -> list[P]:
    """The parts of two replies in the order of their numbers, field `name` of each; the second had its own numbers.

    `known` are the numbers of the first request, `rest_known` those of the request for what the first reply left out.
    """
    missing = [known[at] for at in missing_positions(known, (getattr(part, name) for part in first))]
    originals = dict(zip(rest_known, missing, strict=True))
    parts = [*first, *(part.model_copy(update={name: originals[getattr(part, name)]}) for part in rest)]
    order = {number: at for at, number in enumerate(known)}
    return sorted(parts, key=lambda part: order[getattr(part, name)])


# Refusals in words: a model that will not look writes that it is sorry where a description was asked for.
#
# Such a text fits the schema of a caption. Taken for one, it would be stored, searched and cited.

_SORRY = r"(?:(?:i|we)['’]?(?:m|re)|i am|we are)\s+(?:(?:very|so)\s+)?(?:sorry|afraid|unable|not (?:able|allowed))\b"
_CANNOT = r"(?:i|we)\s+(?:can['’]?t|cannot|can not|won['’]?t|will not|must decline|(?:don['’]?t|do not) feel)\b"
_MODEL = r"as an? (?:ai|artificial|language|large language)\b"
_REFUSAL = re.compile(rf"\W*(?:(?:sorry|apologies)\b|{_SORRY}|{_CANNOT}|{_MODEL})", re.IGNORECASE)


def check_not_refused(text: str) -> None:
    """Raise `InvalidReply` for a description that begins as refusals do; nothing seen is ever described so."""
    if _REFUSAL.match(text):
        raise InvalidReply("that is a refusal, not a description; say what is seen, and leave out what you may not say")


# Replies without content: the same words over and over, or the words of the request. Small models write both.
#
# Such a text fits the schema of a description. Taken for one, it would be stored, searched and cited.

LEAST_WORDS = 16
"""A shorter text is not looked at for loops: a song may well say "row, row, row your boat"."""
LEAST_NEW = 0.5
"""Share of runs of `LOOPED` words that are new in a text that says something; in loops of small models it is 0.03 to
0.3 (SmolLM2-135M, docs/measured.md), in sentences above 0.65."""
LOOPED = 4
ECHOED = 5
"""Words in a row that a description and its instructions do not share by chance."""


def check_not_looping(text: str) -> None:
    """Raise `InvalidReply` for a text that repeats itself more than it says anything."""
    words = _words(text)
    runs = _runs(words, LOOPED)
    if len(words) >= LEAST_WORDS and len(set(runs)) < LEAST_NEW * len(runs):
        raise InvalidReply("it says the same words over and over; say each thing once")


def check_not_echoed(text: str, instructions: str, words: int = ECHOED) -> None:
    """Raise `InvalidReply` for a text that has so many words in a row from the instructions for it."""
    if not set(_runs(_words(text), words)).isdisjoint(_runs(_words(instructions), words)):
        raise InvalidReply("it repeats the instructions; say what is known of the part instead")


def _words(text: str) -> list[str]:
    return words_of(text.casefold())


def _runs(words: Sequence[str], length: int) -> list[tuple[str, ...]]:
    return [tuple(words[at : at + length]) for at in range(len(words) - length + 1)]
