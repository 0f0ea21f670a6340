"""Requests of VideoAgent: confidence in an answer, and frames that are missing (arXiv 2403.10517, section 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field

from kinodex.agent.errors import InvalidReply
from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.reply import Reasoned, Reply, described, read_alone
from kinodex.agent.protocol.videos import Segment
from kinodex.agent.replies.schema import Bounds
from kinodex.agent.replies.values import WholeNumber, whole_number
from kinodex.agent.requests.run_request import RunRequest

SURE = 3
"""The top of the scale: 1, the information is insufficient; 2, partly sufficient; 3, sufficient."""
Confidence = Annotated[int, Field(ge=1, le=SURE), BeforeValidator(whole_number)]


class Reflection(Reasoned):
    """The confidence in an answer, from 1 to 3, after some reasoning."""

    model_config = described("Whether an answer has enough to rest on, from 1 to 3, after some reasoning.")

    confidence: Confidence = Field(description="a whole number")
    _accept = read_alone("confidence")


class Wanted(Reply):
    """A description of a missing frame, and the segment in which to look for it."""

    model_config = described("What a frame should show, and the segment in which to look for it.")

    segment: WholeNumber = Field(description="number of the segment in which to look")
    description: str = Field(description="what is to be seen in the frame")


class Missing(Reasoned):
    """Frames to be looked for."""

    frames: list[Wanted] = Field(description="the frames to look for")
    _accept = read_alone("frames", list)


@dataclass(frozen=True, kw_only=True)
class ReflectOnAnswer(RunRequest[Reflection]):
    """Rate how far the `notes` suffice for the `answer` that they led to (Algorithm 1, SelfReflect)."""

    Reply = Reflection
    template: ClassVar[str] = "reflect_on_answer"
    notes: tuple[Note, ...]
    answer: str


@dataclass(frozen=True, kw_only=True)
class FindMissing(RunRequest[Missing]):
    """Name frames to look for and their segments, at most `most` (Algorithm 1, FindMissingInfo)."""

    Reply = Missing
    template: ClassVar[str] = "find_missing"
    notes: tuple[Note, ...]
    segments: tuple[Segment, ...]
    most: int
    doubt: str = ""
    """Why the answer that the notes led to was not confirmed."""

    def bounds(self) -> Bounds:
        return {"frames": {"minItems": 1, "maxItems": self.most}}

    def interpret(self, reply: Missing) -> Missing:
        known = {segment.number for segment in self.segments}
        kept = [each for each in reply.frames if each.segment in known]
        return reply.model_copy(update={"frames": kept or reply.frames})

    def check(self, reply: Missing) -> None:
        """Count the first `most` frames of a reply that describes too many."""
        known = {segment.number for segment in self.segments}
        frames = reply.frames[: self.most]
        unknown = [each.segment for each in frames if each.segment not in known]
        if unknown:
            raise InvalidReply(f"segment {unknown[0]} is not in the list; choose from {sorted(known)}")
        if not frames:
            raise InvalidReply(f"no frame is described; describe 1 to {self.most}")
        if any(not each.description.strip() for each in frames):
            raise InvalidReply("a description is empty; say in a few words what the frame should show")
