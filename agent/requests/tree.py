"""Requests of the agents that search a tree: queries, rewards of segments, and the next step.

Each agent has prompts of its own, and fields beyond these in its own requests. Replies are accepted in the shapes that
the papers' prompts ask for too (EEA, Tables 7 to 11; VCA, Figures 6 to 8), such as `{"Segment 0": {"explanation": ...,
"score": 70}}`, `{"query1": ...}` and `{"Segment": 3}`, and as arrays of strings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from kinodex.agent.answer_rules import Declining
from kinodex.agent.errors import InvalidReply
from kinodex.agent.protocol.frames import ShownFrame, citation_numbers
from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.reply import (
    Reasoned,
    Reply,
    allowed_actions,
    described,
    read_as,
    with_reasoning,
)
from kinodex.agent.protocol.request import Request
from kinodex.agent.protocol.videos import ScoredSegment, Segment
from kinodex.agent.replies.lengths import numbers_of
from kinodex.agent.replies.schema import NULL, REASONING_NAMES, Bounds, one_of
from kinodex.agent.replies.values import Score, WholeNumber
from kinodex.agent.requests.answer import (
    Answered,
    answer_in_words,
    check_answer,
    cited_frames,
    letters,
    read_decision,
)
from kinodex.agent.requests.in_parts import InParts
from kinodex.agent.requests.run_request import RunRequest

MAX_QUERY_CHARACTERS = 300
MAX_QUERIES = 5
NAMED_AT_MOST = 20
"""Segments that a complaint names, of those that can be explored."""
ScoreKind = Literal["fused", "reward", "none"]
ACTIONS = ("explore", "answer", "insufficient_evidence")


class SegmentScore(Reply):
    """The promise of one segment for the question, from 0 to 100, after its reason."""

    model_config = described("How much one segment promises for the question, from 0 to 100, and why.")

    segment: WholeNumber = Field(description="its number")
    reasoning: str = Field(default="", description="what its frames suggest about it, step by step")
    """Shown to the policy too, so that models that think before they write give it as well."""
    score: Score = Field(description="how much it promises, a whole number from 0 to 100 (not 0 to 1)")
    _read_reasoning = read_as(with_reasoning)


class SegmentScores(Reply):
    """One score for each segment."""

    beside: ClassVar[tuple[str, ...]] = REASONING_NAMES
    """Keys beside those of segments in a reply that names each segment by a key."""
    segments: list[SegmentScore] = Field(description="one for each segment to be scored")

    @model_validator(mode="before")
    @classmethod
    def _accept(cls, value: object) -> object:
        if isinstance(value, list):
            return {"segments": value}
        if not isinstance(value, Mapping) or "segments" in value:
            return value
        kept = {name: each for name, each in value.items() if str(name).casefold() in cls.beside}
        scores = [
            {"segment": str(name), **(each if isinstance(each, Mapping) else {"score": each})}
            for name, each in value.items()
            if name not in kept
        ]
        return {**kept, "segments": scores}


class Queries(Reasoned):
    """Short texts to look for in the video; the list may be empty."""

    queries: list[str] = Field(description="the search texts")

    @model_validator(mode="before")
    @classmethod
    def _accept(cls, value: object) -> object:
        if isinstance(value, list):
            return {"queries": value}
        if isinstance(value, Mapping):
            named = [name for name in value if str(name).casefold() not in REASONING_NAMES]
            if "queries" not in value and all(str(name).casefold().startswith("query") for name in named):
                return {**value, "queries": [value[name] for name in named]}
        return value


class NextStep(Reply):
    """The next step of a search: explore one segment, answer, or report that the evidence is missing."""

    action: Literal["explore", "answer", "insufficient_evidence"] = Field(description="what to do next")
    segment: WholeNumber | None = Field(description="number of the segment to explore, else null")


class Decision(Answered, NextStep):
    """The next step, with the answer if it is one."""

    model_config = described(
        "What to do next: look closer at one segment, answer, or say that the evidence is not there."
    )
    _accept = read_as(read_decision)


@dataclass(frozen=True, kw_only=True)
class DiscoverQueries(Request[Queries]):
    """Name short texts to search for, from the question and its options alone (EEA section 3.1, Table 10)."""

    Reply = Queries
    template: ClassVar[str] = "discover_queries"
    role: ClassVar[str] = "policy"
    question: Question

    def bounds(self) -> Bounds:
        return {"queries": {"minItems": 1, "maxItems": MAX_QUERIES}}

    def check(self, reply: Queries) -> None:
        if not reply.queries:
            raise InvalidReply(f"no query at all; give 1 to {MAX_QUERIES}")
        check_queries(reply.queries)


@dataclass(frozen=True, kw_only=True)
class ScoreSegments(RunRequest[SegmentScores], InParts[SegmentScores]):
    """Score how promising each of `segments` is, by the frames at its borders.

    In later rounds `history` holds all scores so far (0 to 100) and `parent` the segment that is now divided.
    """

    Reply = SegmentScores
    role: ClassVar[str] = "reward"
    parts: ClassVar[tuple[str, str, str]] = ("segments", "segments", "segment")
    segments: tuple[Segment, ...]
    frames: tuple[ShownFrame, ...]
    history: tuple[ScoredSegment, ...] = ()
    parent: int | None = None

    @property
    def new_frames(self) -> tuple[ShownFrame, ...]:
        """The frames by which the segments are scored."""
        return self.frames

    def interpret(self, reply: SegmentScores) -> SegmentScores:
        """Keep what is said of the segments asked for, on the scale asked for.

        Scores of a segment that was not asked for are left out, if there are others, and so are several of one segment
        that differ: it is asked for once more with those that lack a score (`missing`). The prompt asks for whole
        numbers from 0 to 100: where none is above 1, or 10, and one has a fraction, they are of 1, or of 10. Of whole
        numbers up to 1, or up to 10 that are no steps of five, there is doubt, and a sure 1 of 1 would lose the search
        as 1 of 100: they are asked for once more (`InvalidReply`), and of 10 if they come again. A score above 10 in
        the `history` settles it.
        """
        parts = super().interpret(reply).segments
        scores, most = [each.score for each in parts], max((each.score for each in parts), default=0.0)
        factor = 1.0 if most > 10 else 10.0 if most > 1 else 100.0
        is_whole = all(each == int(each) for each in scores)
        of_hundred = any((each.score or 0) > 10 for each in self.history)
        if factor == 10.0 and is_whole and (of_hundred or all(each % 5 == 0 for each in scores)):
            factor = 1.0  # low, as were others on the right scale, or in steps of five as models give them
        doubtful = factor > 1 and is_whole and any(scores)
        if doubtful and (factor == 100.0 or not self.attempt):
            at_most = round(100 / factor)
            raise InvalidReply(
                f"a score of {most:g} may be of {at_most} or of 100; give whole numbers from 0 to 100, as 85"
            )
        rescaled = [each.model_copy(update={"score": round(factor * each.score, 6)}) for each in parts]
        return reply.model_copy(update={"segments": rescaled})


@dataclass(frozen=True, kw_only=True)
class Decide(RunRequest[Decision]):
    """Explore one of `candidates`, answer, or give up; `frames` are the memory.

    Candidate scores are fused, 0 to 1, or bare rewards, 0 to 100, or there are none. With `must_answer` exploring is
    over.
    """

    Reply = Decision
    candidates: tuple[ScoredSegment, ...]
    frames: tuple[ShownFrame, ...]
    scores: ScoreKind = "fused"
    must_answer: bool = False
    declining: Declining = "allowed"

    @property
    def listed(self) -> list[ScoredSegment]:
        """The candidates that the prompt lists, the best first: all that can be explored.

        Where no scores are shown the latest ones come first.
        """
        live = [each for each in self.candidates if each.explorable]
        return sorted(reversed(live) if self.scores == "none" else live, key=lambda each: -each.rank)

    @property
    def actions(self) -> tuple[str, ...]:
        return allowed_actions(ACTIONS[1:] if self.must_answer else ACTIONS, self.declining)

    @property
    def instead(self) -> str:
        return super().instead if self.must_answer else "choose a segment to explore, or answer"

    def bounds(self) -> Bounds:
        option = letters(self.question, or_null=len(self.actions) > 1)
        shown = chain(*citation_numbers(self.frames, getattr(self, "notes", ())))
        cited = {**cited_frames(), **numbers_of(list(shown))}
        bounds: dict[str, Mapping[str, object]] = {"action": one_of(self.actions), **option, "evidence": cited}
        return {**bounds, "segment": NULL} if self.must_answer else bounds

    def check(self, reply: Decision) -> None:
        if reply.action == "explore":
            self._check_segment(reply.segment)
        elif reply.action == "answer":
            check_answer(self.question, reply)

    def in_words(self, text: str) -> Decision | None:
        undecided = not self.must_answer and "segment" in text.casefold()
        decision = None if undecided else answer_in_words(self.question, text)
        return None if decision is None else self.Reply.model_validate(decision)

    def _check_segment(self, number: int | None) -> None:
        if self.must_answer:
            raise InvalidReply("exploring is over; answer, or say that the evidence is insufficient")
        if number not in {each.segment.number for each in self.candidates if each.explorable}:
            named = sorted(each.segment.number for each in self.listed[:NAMED_AT_MOST])
            raise InvalidReply(f"segment {number} cannot be explored; choose one of {named}, or answer")


def check_queries(queries: Sequence[str]) -> None:
    for query in queries:
        if not query.strip() or len(query) > MAX_QUERY_CHARACTERS:
            raise InvalidReply(f"a query is empty or over {MAX_QUERY_CHARACTERS} characters; use a few words")
