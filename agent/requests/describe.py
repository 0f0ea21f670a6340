"""Requests to describe videos for any question: their replies are worth storing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field

from kinodex.agent.errors import InvalidReply
from kinodex.agent.protocol import (
    Note,
    Reasoned,
    Reply,
    Request,
    Segment,
    ShownFrame,
    Video,
    described,
    read_alone,
    read_as,
    with_reasoning,
)
from kinodex.agent.replies import Bounds, Score, WholeNumber, exactly, whole_number
from kinodex.agent.requests.answer import AnswerRequest, check_not_echoed, check_not_looping, check_not_refused


class Description(Reply):
    """A caption of frames, and the model's confidence in it, from 0 to 100.

    Descriptions begin with their text: it is what there is to say before the number, and reasons would double the cost.
    """

    model_config = described("What is seen, and how sure the model says it is, from 0 to 100.")

    caption: str = Field(description="the sentences")
    confidence: Score = Field(description="how sure you are that every word is right, a whole number from 0 to 100")


@dataclass(frozen=True, kw_only=True)
class DescribeSegment(Request[Description]):
    """Describe `segment` by some of its frames."""

    Reply = Description
    template: ClassVar[str] = "describe_segment"
    is_kept: ClassVar[bool] = True
    role: ClassVar[str] = "captioner"
    temperature: ClassVar[float] = 0.0
    segment: Segment
    frames: tuple[ShownFrame, ...]

    def interpret(self, reply: Description) -> Description:
        """Multiply the confidence by 100 if it is a fraction: it was asked for in whole numbers from 0 to 100."""
        if not 0 < reply.confidence < 1:
            return reply
        return reply.model_copy(update={"confidence": round(100 * reply.confidence, 6)})

    def check(self, reply: Description) -> None:
        if not reply.caption.strip():
            raise InvalidReply("the caption is empty; say in a sentence or two what is seen")
        check_not_refused(reply.caption)


class Summary(Reply):
    """A summary of a whole video."""

    model_config = described("What a video shows as a whole.")

    summary: str = Field(description="the sentences")


@dataclass(frozen=True, kw_only=True)
class Summarize(Request[Summary]):
    """Summarize the one video in `videos` by the captions of its parts in `notes`."""

    Reply = Summary
    template: ClassVar[str] = "summarize"
    is_kept: ClassVar[bool] = True
    role: ClassVar[str] = "policy"
    temperature: ClassVar[float] = 0.0
    videos: tuple[Video, ...]
    notes: tuple[Note, ...]

    @property
    def bank(self) -> int:
        """The number of notes that are captions: all, so that the prompt begins as those do that read them later."""
        return len(self.notes)

    def check(self, reply: Summary) -> None:
        if not reply.summary.strip():
            raise InvalidReply("the summary is empty; say in a few sentences what the video shows")
        check_not_refused(reply.summary)


# The request to a judge: score a free-form answer by the true one, 0 to 3 (MMBench-Video, 2406.14515).

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


# Requests for the title and the summary of a scene or a chapter: a table of contents is written with them.

LONGEST_TITLE = 120
"""Characters: a longer one is a summary in the wrong place."""
LONGEST_SUMMARY = 2000
KEY_WORDS = 4
"""Words in a row from the descriptions of the keys, which are shorter than sentences: "at most eight words"."""


class PartSummary(Reply):
    """A title and a summary of a part of a video."""

    model_config = described("An entry of a table of contents of a video.")

    title: str = Field(description="at most eight words that tell this part from the others")
    summary: str = Field(description="one to three sentences")


@dataclass(frozen=True, kw_only=True)
class SummarizePart(Request[PartSummary]):
    """Give a part of a video a title and a summary, by lines about it in `notes`, or by frames.

    The lines of a scene are captions and what is said or written meanwhile; those of a chapter are its scenes.
    """

    Reply = PartSummary
    template: ClassVar[str] = "summarize_part"
    role: ClassVar[str] = "captioner"
    temperature: ClassVar[float] = 0.0
    part: Segment
    level: Literal["scene", "chapter"]
    notes: tuple[Note, ...]
    frames: tuple[ShownFrame, ...] = ()

    def check(self, reply: PartSummary) -> None:
        for name, text, most, form in (
            ("title", reply.title.strip(), LONGEST_TITLE, "at most eight words"),
            ("summary", reply.summary.strip(), LONGEST_SUMMARY, "one to three sentences"),
        ):
            if not text:
                raise InvalidReply(f"the {name} is empty; give a title and a summary")
            check_not_refused(text)
            if len(text) > most:
                raise InvalidReply(f"the {name} has {len(text)} characters; give {form}")
            check_not_looping(text)
            for key in PartSummary.model_fields.values():
                check_not_echoed(text, key.description or "", KEY_WORDS)


# The request for verdicts: is what somebody searched for there, in each of the moments that a search found?


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
        """The notes that share some of its time."""
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


# The request of the gate: a question, asked again of the evidence of its answer and nothing else.


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
