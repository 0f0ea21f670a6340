"""The request of the gate: a question, asked again of the evidence of its answer and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.notes import Note
from kinodex.agent.requests.answer import AnswerRequest


@dataclass(frozen=True, kw_only=True)
class Verify(AnswerRequest):
    """Answer from the evidence of an answer alone, without knowing that answer.

    Of a question without options the answer is the `claim`, since two answers in words are never the same: the reply
    repeats it if the evidence shows it.
    """

    template: ClassVar[str] = "verify"
    role: ClassVar[str] = "vision"
    frames: tuple[ShownFrame, ...]
    notes: tuple[Note, ...]
    claim: str = ""


@dataclass(frozen=True, kw_only=True)
class VerifyNotes(Verify):
    """The same of notes alone: the model that reads answers."""

    role: ClassVar[str] = "policy"
    frames: tuple[ShownFrame, ...] = ()
