"""Requests for the answer, with which every agent ends: from frames, or from notes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from agent.core.protocol import Request, ShownFrame
from agent.core.question import LATER, Note, Question, Video
from agent.core.replies import Answered, Conclusion
from agent.errors import InvalidReply


@dataclass(frozen=True, kw_only=True)
class AnswerRequest(Request[Conclusion]):
    """A request for an answer, or for the verdict that the evidence is insufficient."""

    Reply = Conclusion
    question: Question
    videos: tuple[Video, ...]

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
class AnswerNotes(AnswerRequest):
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


def check_answer(question: Question, reply: Answered) -> None:
    """Raise `InvalidReply` unless the reply names one of the options, or has a text if there are none."""
    if question.options and chosen_option(question, reply) is None:
        letters = [letter for letter, _ in question.lettered]
        named = reply.option or reply.answer
        raise InvalidReply(f"{named!r} names no option; give a letter from {letters[0]} to {letters[-1]}")
    if not question.options and not (reply.answer or "").strip():
        raise InvalidReply("the answer is empty; say it in a few words")


def answer_in_words(question: Question, text: str) -> dict[str, object] | None:
    """Decide to answer with the option that a text names, as JSON values; None if it names none for certain."""
    option = question.option_index(text)
    return None if option is None else {"action": "answer", "option": question.lettered[option][0], "answer": text}


def chosen_option(question: Question, reply: Answered) -> int | None:
    """Find the index of the option that a reply names, by its letter or its words."""
    for text in (reply.option, reply.answer):
        if text and (index := question.option_index(text)) is not None:
            return index
    return None
