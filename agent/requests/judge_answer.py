"""The request to a judge: score a free-form answer by the true one, 0 to 3 (MMBench-Video, 2406.14515)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field

from kinodex.agent.protocol.reply import Reasoned, read_alone
from kinodex.agent.protocol.request import Request
from kinodex.agent.replies.values import whole_number

_BARE = re.compile(r"[^\w-]*(?:(?:the\s+)?score(?:\s+is)?[^\w-]*)?([0-3])(?:\s*(?:/|out of)\s*3)?\W*", re.IGNORECASE)
Grade = Annotated[int, Field(ge=0, le=3), BeforeValidator(whole_number)]


class Verdict(Reasoned):
    """A score from 0 to 3, after the reason for it."""

    score: Grade = Field(description="a whole number")
    _accept = read_alone("score")


@dataclass(frozen=True, kw_only=True)
class JudgeAnswer(Request[Verdict]):
    """Score `answer` by `reference`. The judge sees no video and does not know who answered."""

    Reply = Verdict
    template: ClassVar[str] = "judge_answer"
    role: ClassVar[str] = "judge"
    temperature: ClassVar[float] = 0.0
    question: str
    reference: str
    answer: str

    def in_words(self, text: str) -> Verdict | None:
        """Read a score without JSON, as MMBench-Video's own prompt asks for it: "3", "Score: 3", "3/3"."""
        bare = _BARE.fullmatch(text.strip())
        return None if bare is None else Verdict(score=int(bare[1]))
