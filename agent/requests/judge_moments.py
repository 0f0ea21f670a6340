"""The request for verdicts: is what somebody searched for there, in each of the moments that a search found?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from pydantic import Field

from kinodex.agent.errors import InvalidReply
from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.reply import Reply, described, read_alone, read_as, with_reasoning
from kinodex.agent.protocol.request import Request
from kinodex.agent.replies.schema import Bounds, exactly
from kinodex.agent.replies.values import WholeNumber
from kinodex.agent.requests.refusals import check_not_refused


class MomentVerdict(Reply):
    """A yes or no about one moment, after the reason for it."""

    model_config = described("A yes or no about one moment, after the reason.")

    moment: WholeNumber = Field(description="its number")
    reasoning: str = Field(description="what is seen or said there that decides it, in one short sentence")
    present: bool = Field(description="true if all that was searched for is there, else false")
    _read_reasoning = read_as(with_reasoning)


class MomentVerdicts(Reply):
    """A verdict on each moment."""

    moments: list[MomentVerdict] = Field(description="one for each moment")
    _accept = read_alone("moments", list)


@dataclass(frozen=True, slots=True)
class FoundMoment:
    """A moment `[start_s, end_s)` that a search found, with its number and the labels of its frames."""

    number: int
    video_id: str
    start_s: float
    end_s: float
    frames: tuple[int, ...]

    def meanwhile(self, notes: Sequence[Note]) -> list[Note]:
        """Return the notes that share some of its time."""
        own = (note for note in notes if note.video_id == self.video_id)
        return [note for note in own if note.start_s < self.end_s and note.end_s > self.start_s]


@dataclass(frozen=True, kw_only=True)
class JudgeMoments(Request[MomentVerdicts]):
    """Say of each moment, by its frames and the `notes` of its time, if what is `sought` is there."""

    Reply = MomentVerdicts
    template: ClassVar[str] = "judge_moments"
    role: ClassVar[str] = "vision"
    temperature: ClassVar[float] = 0.0
    sought: str
    moments: tuple[FoundMoment, ...]
    frames: tuple[ShownFrame, ...]
    notes: tuple[Note, ...]

    def bounds(self) -> Bounds:
        return {"moments": exactly(len(self.moments))}

    def check(self, reply: MomentVerdicts) -> None:
        """Refuse verdicts on other moments, two on one, and those without a reason; some may be left out."""
        known = [each.number for each in self.moments]
        judged = [each.moment for each in reply.moments]
        wrong = next((number for number in judged if number not in known or judged.count(number) > 1), None)
        if wrong is not None or not judged:
            got = "no moment is judged" if wrong is None else f"moment {wrong} is judged wrongly or more than once"
            raise InvalidReply(f"{got}; give one entry for each of the moments {', '.join(map(str, known))}")
        for each in reply.moments:
            if not each.reasoning.strip():
                raise InvalidReply(f"moment {each.moment} has no reason; say what is seen or said there")
            check_not_refused(each.reasoning)

    def missing(self, reply: MomentVerdicts) -> Self | None:
        judged = {each.moment for each in reply.moments}
        left = tuple(each for each in self.moments if each.number not in judged)
        return replace(self, moments=left, complaint="", bad_reply="") if left else None

    def join(self, reply: MomentVerdicts, rest: MomentVerdicts) -> MomentVerdicts:
        return MomentVerdicts(moments=[*reply.moments, *rest.moments])
