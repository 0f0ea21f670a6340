"""Requests of kino: the plan of a search, ratings with new entries of the log, and the next step.

The prompts to rate and to step begin alike, with frames in the order of their arrival and under numbers that never
change, so that a server's prefix cache serves one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, ValidationError

from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.notes import LogEntry, Note
from kinodex.agent.protocol.reply import Reasoned, Reply
from kinodex.agent.protocol.videos import ScoredSegment
from kinodex.agent.replies.schema import NAMED, REASONING_NAMES, Bounds, Schema
from kinodex.agent.replies.values import WholeNumber
from kinodex.agent.requests.answer import weighed
from kinodex.agent.requests.tree import (
    Decide,
    Decision,
    DiscoverQueries,
    Queries,
    ScoreKind,
    ScoreSegments,
    SegmentScores,
)

Route = Literal["moment", "words", "whole film"]
MOST_FINDINGS = 4
"""Entries of the log that a round adds."""
MOST_LISTED = 20
"""Segments that a prompt lists, of those with the highest ratings."""


class SearchPlan(Queries):
    """Texts to look for, and where in a film the answer is."""

    where: Route = Field(default="moment", description="where the answer is")


class Finding(Reply):
    """Word of one frame, or of a line beside it, about the question: an entry of the log of a search."""

    frame: WholeNumber = Field(description="number of the frame or line that shows it")
    seen: str = Field(description="what is seen or said there that bears on the question, in one short line")
    supports: list[str] = Field(default=[], description="letters of the options that it supports")
    excludes: list[str] = Field(default=[], description="letters of the options that it excludes")


def _read_findings(value: object) -> object:
    """Leave out what is no finding: it must not cost the scores beside it."""

    def fits(each: object) -> bool:
        try:
            return bool(Finding.model_validate(each).seen.strip())
        except ValidationError:
            return False

    return [each for each in value if fits(each)] if isinstance(value, list) else []


class SegmentRatings(SegmentScores):
    """One score for each segment, and what is new for the log of the search; there may be nothing."""

    beside: ClassVar[tuple[str, ...]] = (*REASONING_NAMES, "findings")
    findings: Annotated[list[Finding], BeforeValidator(_read_findings)] = Field(
        default=[], description="what is new and bears on the question, for the log"
    )


class StepDecision(Decision, Reasoned):
    """The next step, after the reasons for it."""


@dataclass(frozen=True, kw_only=True)
class PlanSearch(DiscoverQueries):
    """Name short texts to search for, from the question and its options alone, and where the answer is."""

    Reply = SearchPlan
    template: ClassVar[str] = "kino_plan"


@dataclass(frozen=True, kw_only=True)
class RateSegments(ScoreSegments):
    """Rate `segments` of one segment or several by the `fresh` last frames, in view of all that is known."""

    Reply = SegmentRatings
    template: ClassVar[str] = "kino_rate"
    notes: tuple[Note, ...] = ()
    """What is said and stands on screen at the times of the frames."""
    log: tuple[LogEntry, ...] | None = None
    """What was found before, and the reply adds to it; None: no log is kept."""
    chapters: tuple[Note, ...] = ()
    """Scenes or chapters of the videos, if the run reads them."""
    fresh: int = 0
    """The number of frames that are new, the last ones."""

    @property
    def new_frames(self) -> tuple[ShownFrame, ...]:
        return self.frames[len(self.frames) - self.fresh :]

    def schema(self, *, reasoning: bool = True) -> Schema:
        schema = super().schema(reasoning=reasoning)
        names = [name for name in schema[NAMED] if name != "findings"]
        if self.log is not None:
            names = ["findings", *names]
        return {**schema, NAMED: {name: schema[NAMED][name] for name in names}, "required": names}

    def bounds(self) -> Bounds:
        letters = [letter for letter, _ in self.question.lettered]
        named = {"items": {"type": "string", "enum": letters}} if letters else {"maxItems": 0}
        findings = {"findings": {"maxItems": MOST_FINDINGS}, "findings.supports": named, "findings.excludes": named}
        return {**super().bounds(), **findings}


@dataclass(frozen=True, kw_only=True)
class ChooseStep(Decide):
    """Explore one of the segments that are listed, answer, or give up, in view of all that is known."""

    Reply = StepDecision
    template: ClassVar[str] = "kino_step"
    scores: ScoreKind = "reward"
    notes: tuple[Note, ...] = ()
    """What is said and stands on screen at the times of the frames."""
    log: tuple[LogEntry, ...] | None = None
    """What was found, round by round; None: no log is kept."""
    chapters: tuple[Note, ...] = ()
    """Scenes or chapters of the videos, if the run reads them."""

    @property
    def listed(self) -> list[ScoredSegment]:
        return super().listed[:MOST_LISTED]

    def bounds(self) -> Bounds:
        return {**super().bounds(), **(weighed(self.question) if self.must_answer else {})}
