"""The request to a judge: score a free-form answer by the true one, 0 to 3 (MMBench-Video, 2406.14515)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from agent.core.protocol import Reply, Request, SegmentNumber

Grade = Annotated[SegmentNumber, Field(ge=0, le=3)]


class Verdict(Reply):
    """A score from 0 to 3, after the reason for it."""

    reason: str
    score: Grade

    @model_validator(mode="before")
    @classmethod
    def _accept(cls, value: object) -> object:
        return {"reason": "", **value} if isinstance(value, Mapping) else {"reason": "", "score": value}


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
