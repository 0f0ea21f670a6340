"""Requests of VideoAgent: confidence in an answer, and frames that are missing (arXiv 2403.10517, section 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, model_validator

from agent.core.protocol import Reasoned, Reply, Request, described
from agent.core.question import LATER, Note, Question, Segment, Video
from agent.core.reply_schema import Bounds
from agent.core.reply_values import WholeNumber, whole_number
from agent.errors import InvalidReply
from agent.requests.chapters import WithChapters

SURE = 3
"""The top of the scale: 1, the information is insufficient; 2, partly sufficient; 3, sufficient."""
Confidence = Annotated[int, Field(ge=1, le=SURE), BeforeValidator(whole_number)]


class Reflection(Reasoned):
    """The confidence in an answer, from 1 to 3, after some reasoning."""

    model_config = described("Whether an answer has enough to rest on, from 1 to 3, after some reasoning.")

    confidence: Confidence = Field(description="a whole number")

    @model_validator(mode="before")
    @classmethod
    def _accept(cls, value: object) -> object:
        return value if isinstance(value, Mapping) else {"confidence": value}


class Wanted(Reply):
    """A description of a missing frame, and the segment in which to look for it."""

    model_config = described("What a frame should show, and the segment in which to look for it.")

    segment: WholeNumber = Field(description="number of the segment in which to look")
    description: str = Field(description="what is to be seen in the frame")


class Missing(Reasoned):
    """Frames to be looked for."""

    frames: list[Wanted] = Field(description="the frames to look for")

    @model_validator(mode="before")
    @classmethod
    def _accept(cls, value: object) -> object:
        return {"frames": value} if isinstance(value, list) else value


@dataclass(frozen=True, kw_only=True)
class ReflectOnAnswer(WithChapters, Request[Reflection]):
    """Rate how far the `notes` suffice for the `answer` that they led to (Algorithm 1, SelfReflect)."""

    Reply = Reflection
    template: ClassVar[str] = "reflect_on_answer"
    role: ClassVar[str] = "policy"
    question: Question
    videos: tuple[Video, ...]
    notes: tuple[Note, ...]
    answer: str

    def example(self) -> Mapping[str, Any]:
        return {"reasoning": "The notes say that the ball was kicked, but not where it came to lie.", "confidence": 2}


@dataclass(frozen=True, kw_only=True)
class FindMissing(WithChapters, Request[Missing]):
    """Name frames to look for and their segments, at most `most` (Algorithm 1, FindMissingInfo)."""

    Reply = Missing
    template: ClassVar[str] = "find_missing"
    role: ClassVar[str] = "policy"
    question: Question
    videos: tuple[Video, ...]
    notes: tuple[Note, ...]
    segments: tuple[Segment, ...]
    most: int
    doubt: str = field(default="", metadata=LATER)
    """Why the answer that the notes led to was not confirmed."""

    def bounds(self) -> Bounds:
        return {"frames": {"minItems": 1, "maxItems": self.most}}

    def example(self) -> Mapping[str, Any]:
        why = "Where the ball came to lie is missing; it must show after the kick."
        frame = {"segment": self.segments[-1].number, "description": "a ball lying behind a goal"}
        return {"reasoning": why, "frames": [frame]}

    def check(self, reply: Missing) -> None:
        """A reply may describe too many frames: the first `most` count."""
        known = {segment.number for segment in self.segments}
        frames = reply.frames[: self.most]
        unknown = [each.segment for each in frames if each.segment not in known]
        if unknown:
            raise InvalidReply(f"segment {unknown[0]} is not in the list; choose from {sorted(known)}")
        if not frames:
            raise InvalidReply(f"no frame is described; describe 1 to {self.most}")
        if any(not each.description.strip() for each in frames):
            raise InvalidReply("a description is empty; say in a few words what the frame should show")
