"""What every agent asks in the end: an answer from frames, or from notes taken on the way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from agent.core.protocol import Request, ShownFrame
from agent.core.question import LATER, Note, Question, Video
from agent.core.replies import Answered, Conclusion
from agent.errors import InvalidReply


@dataclass(frozen=True, kw_only=True)
class Concluding(Request[Conclusion]):
    """Asks for an answer, or that there is nothing to answer from."""

    Reply = Conclusion
    question: Question
    videos: tuple[Video, ...]

    def check(self, reply: Conclusion) -> None:
        if reply.action == "answer":
            check_answer(self.question, reply)

    def in_words(self, text: str) -> Conclusion | None:
        return None if (said := answer_in_words(self.question, text)) is None else self.Reply.model_validate(said)


@dataclass(frozen=True, kw_only=True)
class AnswerFrames(Concluding):
    """Answer from `frames`, and `notes` of what is said then, in one call.

    `evidence` of the reply counts frames from 1, then notes.
    """

    template: ClassVar[str] = "answer_frames"
    role: ClassVar[str] = "vision"
    frames: tuple[ShownFrame, ...]
    notes: tuple[Note, ...] = field(default=(), metadata=LATER)


@dataclass(frozen=True, kw_only=True)
class AnswerNotes(Concluding):
    """Answer from `notes`, what was found out so far in words; `evidence` of the reply counts notes, from 1."""

    template: ClassVar[str] = "answer_notes"
    role: ClassVar[str] = "policy"
    notes: tuple[Note, ...]


@dataclass(frozen=True, kw_only=True)
class Recall(Concluding):
    """Answer a follow-up question from what the questions before it brought out, if that shows the answer clearly.

    `evidence` of the reply counts frames from 1, then notes.
    """

    template: ClassVar[str] = "recall"
    role: ClassVar[str] = "vision"
    frames: tuple[ShownFrame, ...]
    notes: tuple[Note, ...]


@dataclass(frozen=True, kw_only=True)
class Guess(Concluding):
    """Answer from the question alone: the control that shows what needs no video."""

    template: ClassVar[str] = "guess"
    role: ClassVar[str] = "policy"


def check_answer(question: Question, reply: Answered) -> None:
    """Raise `InvalidReply` unless the reply names one of the options, or says something if there are none."""
    if question.options and chosen_option(question, reply) is None:
        letters = [letter for letter, _ in question.lettered]
        given = reply.option or reply.answer
        raise InvalidReply(f"{given!r} names no option; give a letter from {letters[0]} to {letters[-1]}")
    if not question.options and not (reply.answer or "").strip():
        raise InvalidReply("the answer is empty; say it in a few words")


def answer_in_words(question: Question, text: str) -> dict[str, object] | None:
    """A decision to answer with the option that a text names, as JSON values; None if it names none for certain."""
    option = question.option_index(text)
    return None if option is None else {"action": "answer", "option": question.lettered[option][0], "answer": text}


def chosen_option(question: Question, reply: Answered) -> int | None:
    """Index of the option that a reply names, by its letter or its words."""
    for text in (reply.option, reply.answer):
        if text and (index := question.option_index(text)) is not None:
            return index
    return None
