"""Requests for the answer, with which every agent ends, and their replies.

A reply is an option, its words and the evidence, or that there is none. A bare text ("B") is accepted too
(`named_option`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar, Literal

from pydantic import Field

from kinodex.agent.answer_rules import Declining
from kinodex.agent.errors import InvalidReply
from kinodex.agent.protocol.frames import ShownFrame, citation_numbers
from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.reply import INSUFFICIENT, Reasoned, Reply, allowed_actions, read_as
from kinodex.agent.protocol.request import Request
from kinodex.agent.protocol.videos import Video
from kinodex.agent.replies.lengths import numbers_of
from kinodex.agent.replies.schema import LEFT_OUT, Bounds, one_of
from kinodex.agent.replies.values import Numbers, is_blank, says_nothing
from kinodex.agent.requests.named_option import lone_letter, named_option


class Answered(Reply):
    """An answer: the option's letter if there are options, else a text; and the frames it rests on.

    Only one of both is asked for: the second could say something else.
    """

    option: str | None = Field(default=None, description="letter of the chosen option, else null")
    answer: str | None = Field(default=None, description="the answer in words, else null")
    evidence: Numbers = Field(description="numbers of the frames or notes that show the answer")
    """Numbers of the shown frames (1 is the first) that the answer rests on."""


class _Verdict(Reasoned):
    action: Literal["answer", "insufficient_evidence"] = Field(description="answer, or say that it cannot be seen")


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
    return not (says_nothing(found.get("option")) and says_nothing(found.get("answer")))


class Conclusion(Answered, _Verdict):
    """An answer from the frames at hand, or that they do not show enough."""

    _accept = read_as(read_decision)


@dataclass(frozen=True, kw_only=True)
class AnswerRequest(Request[Conclusion]):
    """A request for an answer, or for the verdict that the evidence is insufficient."""

    Reply = Conclusion
    question: Question
    videos: tuple[Video, ...]
    declining: Declining = "allowed"

    @property
    def actions(self) -> tuple[str, ...]:
        return allowed_actions(("answer", "insufficient_evidence"), self.declining)

    @property
    def shown(self) -> list[int]:
        """The numbers of the frames and notes that a reply can cite."""
        return list(chain(*citation_numbers(self.frames, getattr(self, "notes", ()))))

    def bounds(self) -> Bounds:
        option = letters(self.question, or_null=len(self.actions) > 1)
        return {"action": one_of(self.actions), **option, "evidence": numbers_of(self.shown)}

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
    notes: tuple[Note, ...] = ()

    def bounds(self) -> Bounds:
        return {**super().bounds(), **weighed(self.question)}


@dataclass(frozen=True, kw_only=True)
class AnswerNotes(AnswerRequest):
    """Answer from `notes`, the findings so far in words; `evidence` of the reply counts notes, from 1."""

    template: ClassVar[str] = "answer_notes"
    role: ClassVar[str] = "policy"
    notes: tuple[Note, ...]

    def bounds(self) -> Bounds:
        return {**super().bounds(), **weighed(self.question)}


@dataclass(frozen=True, kw_only=True)
class Recall(AnswerRequest):
    """Answer a follow-up question from the evidence of earlier questions, if that shows the answer clearly.

    `evidence` of the reply counts frames from 1, then notes.
    """

    template: ClassVar[str] = "recall"
    role: ClassVar[str] = "vision"
    frames: tuple[ShownFrame, ...]
    notes: tuple[Note, ...]

    def example(self) -> Mapping[str, Any]:
        """Return a dry run assumes that the earlier evidence tells nothing, where a reply may say so."""
        if self.declining != "allowed":
            return super().example()
        return {"reasoning": "", "action": INSUFFICIENT, "option": None, "answer": None, "evidence": []}


@dataclass(frozen=True, kw_only=True)
class Guess(AnswerRequest):
    """Answer from the question alone: the control that shows which questions need no video."""

    template: ClassVar[str] = "guess"
    role: ClassVar[str] = "policy"


def letters(question: Question, *, or_null: bool = True) -> Bounds:
    """Ask for one of the letters of a question, which are the same for most of a benchmark; without any for words."""
    if not question.options:
        return {"option": LEFT_OUT}
    letter = one_of([letter for letter, _ in question.lettered], or_null=or_null)
    if not or_null:
        letter = {**letter, "description": "letter of the chosen option"}
    return {"option": letter, "answer": LEFT_OUT}


def weighed(question: Question) -> Bounds:
    """Give the last reply of a run room for what speaks for and against each option."""
    about = "for each option what speaks for it and what against it; then which one is left"
    return {"reasoning": {"description": about}} if question.options else {}


def cited_frames() -> Mapping[str, object]:
    return {"description": "numbers of the frames or lines that show the answer"}


def check_answer(question: Question, reply: Answered) -> None:
    """Raise `InvalidReply` unless the reply names one of the options, or says something if there are none.

    Models that are held to a schema write "null" or "N/A" where they have no answer but have to give a text.
    """
    if question.options and chosen_option(question, reply) is None:
        letters = [letter for letter, _ in question.lettered]
        raise InvalidReply(
            f"{(reply.option or reply.answer)!r} names no option; write one letter, from {letters[0]} to {letters[-1]}"
        )
    if not question.options and is_blank(reply.answer):
        said = f"{reply.answer!r} is no answer" if (reply.answer or "").strip() else "the answer is empty"
        raise InvalidReply(f"{said}; say it in a few words")


def answer_in_words(question: Question, text: str) -> dict[str, object] | None:
    """Decide to answer with the option that a text names, as JSON values; None if it names none for certain."""
    option = named_option(text, question.options)
    return None if option is None else {"action": "answer", "option": question.lettered[option][0], "answer": text}


def chosen_option(question: Question, reply: Answered) -> int | None:
    """Find the index of the option that a reply names, by its letter or its words; None if it names none.

    A letter alone in `option` is one, even if an option's own words are a letter. `answer`, which is not asked for
    beside it, counts where `option` says nothing.
    """
    options, option = question.options, reply.option or ""
    if says_nothing(reply.option) and named_option(option, options) is None:
        return None if reply.answer is None or is_blank(reply.answer) else named_option(reply.answer, options)
    letter = lone_letter(option)
    return letter if letter is not None and letter < len(options) else named_option(option, options)
