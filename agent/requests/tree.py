"""Requests of the tree agents: queries, rewards, and the next segment (EEA, Tables 7 to 11; VCA, section 3).

Replies are accepted in the shapes that the papers' prompts ask for too, such as `{"Segment 0": {"explanation": ...,
"score": 70}}`, `{"query1": ...}` and `{"Segment": 3}`, and as arrays of strings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import model_validator

from agent.core.protocol import Reply, Request, Score, SegmentNumber, ShownFrame, described
from agent.core.question import Question, ScoredSegment, Segment, Video
from agent.errors import InvalidReply
from agent.requests.answer import Answered, answer_in_words, check_answer, read_decision

MAX_QUERY_CHARACTERS = 300
ScoreKind = Literal["fused", "reward", "none"]


class SegmentScore(Reply):
    """The promise of one segment for the question, from 0 to 100, after its reason."""

    model_config = described("How much one segment promises for the question, from 0 to 100, and why.")

    segment: SegmentNumber
    explanation: str
    score: Score

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, value: object) -> object:
        return {"explanation": "", **value} if isinstance(value, dict) else value


class SegmentScores(Reply):
    """One score for each segment."""

    segments: list[SegmentScore]

    @model_validator(mode="before")
    @classmethod
    def _accept(cls, value: object) -> object:
        if isinstance(value, list):
            return {"segments": value}
        if isinstance(value, Mapping) and "segments" not in value:
            return {"segments": [_keyed_score(str(name), each) for name, each in value.items()]}
        return value


def _keyed_score(name: str, value: object) -> dict[str, object]:
    inner = value if isinstance(value, Mapping) else {"score": value}
    return {"segment": name, "explanation": "", **inner}


class Queries(Reply):
    """Short texts to look for in the video; the list may be empty."""

    queries: list[str]

    @model_validator(mode="before")
    @classmethod
    def _accept(cls, value: object) -> object:
        if isinstance(value, list):
            return {"queries": value}
        if isinstance(value, Mapping) and all(str(name).casefold().startswith("query") for name in value):
            return {"queries": list(value.values())}
        return value


class Decision(Answered):
    """The next step: explore one segment, answer, or report that the evidence is missing."""

    model_config = described(
        "What to do next: look closer at one segment, answer, or say that the evidence is not there."
    )

    action: Literal["explore", "answer", "insufficient_evidence"]
    segment: SegmentNumber | None

    @model_validator(mode="before")
    @classmethod
    def _accept(cls, value: object) -> object:
        return read_decision(value)


@dataclass(frozen=True, kw_only=True)
class DiscoverQueries(Request[Queries]):
    """Name short texts to search for, from the question and its options alone (EEA section 3.1, Table 10)."""

    Reply = Queries
    template: ClassVar[str] = "discover_queries"
    role: ClassVar[str] = "policy"
    question: Question

    def check(self, reply: Queries) -> None:
        if not reply.queries:
            raise InvalidReply("no query at all; give 1 to 5")
        _check_queries(reply)


@dataclass(frozen=True, kw_only=True)
class ProposeQueries(Request[Queries]):
    """Name further texts to search for, seen in `frames` and not yet `known` (EEA section 3.1, Table 11)."""

    Reply = Queries
    template: ClassVar[str] = "propose_queries"
    role: ClassVar[str] = "policy"
    question: Question
    known: tuple[str, ...]
    frames: tuple[ShownFrame, ...]

    def check(self, reply: Queries) -> None:
        _check_queries(reply)


@dataclass(frozen=True, kw_only=True)
class ScoreSegments(Request[SegmentScores]):
    """Score how promising each of `segments` is, by the frames at its borders (EEA 3.2, Tables 7 and 8).

    In later rounds `history` holds all scores so far (0 to 100) and `parent` the segment that is now divided.
    """

    Reply = SegmentScores
    template: ClassVar[str] = "score_segments"
    role: ClassVar[str] = "reward"
    question: Question
    videos: tuple[Video, ...]
    segments: tuple[Segment, ...]
    frames: tuple[ShownFrame, ...]
    history: tuple[ScoredSegment, ...] = ()
    parent: int | None = None

    def check(self, reply: SegmentScores) -> None:
        """Check that at least one segment is scored, none twice, and no unknown one."""
        numbers = [score.segment for score in reply.segments]
        known = {segment.number for segment in self.segments}
        unknown = sorted(set(numbers) - known)
        if unknown:
            raise InvalidReply(f"segment {unknown[0]} is not among those to score: {sorted(known)}")
        if len(set(numbers)) < len(numbers):
            raise InvalidReply("a segment is scored twice; give one score for each")
        if not numbers:
            raise InvalidReply(f"no segment is scored; give one score for each of {sorted(known)}")


@dataclass(frozen=True, kw_only=True)
class Decide(Request[Decision]):
    """Explore one of `candidates`, answer, or give up (EEA section 3.3, Table 9; VCA section 3.3).

    Candidate scores are fused, 0 to 1, or bare rewards, 0 to 100, or there are none; `frames` are the memory.
    With `must_answer` exploring is over.
    """

    Reply = Decision
    template: ClassVar[str] = "decide"
    role: ClassVar[str] = "policy"
    question: Question
    videos: tuple[Video, ...]
    candidates: tuple[ScoredSegment, ...]
    frames: tuple[ShownFrame, ...]
    scores: ScoreKind = "fused"
    must_answer: bool = False

    def check(self, reply: Decision) -> None:
        if reply.action == "explore":
            self._check_segment(reply.segment)
        elif reply.action == "answer":
            check_answer(self.question, reply)

    def in_words(self, text: str) -> Decision | None:
        undecided = not self.must_answer and "segment" in text.casefold()
        decision = None if undecided else answer_in_words(self.question, text)
        return None if decision is None else Decision.model_validate(decision)

    def _check_segment(self, number: int | None) -> None:
        if self.must_answer:
            raise InvalidReply("exploring is over; answer, or say that the evidence is insufficient")
        open_ones = sorted(each.segment.number for each in self.candidates if each.explorable)
        if number not in open_ones:
            raise InvalidReply(f"segment {number} cannot be explored; choose one of {open_ones}, or answer")


def _check_queries(reply: Queries) -> None:
    for query in reply.queries:
        if not query.strip() or len(query) > MAX_QUERY_CHARACTERS:
            raise InvalidReply(f"a query is empty or over {MAX_QUERY_CHARACTERS} characters; use a few words")
