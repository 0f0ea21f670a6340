"""Requests of the tree agents: queries, rewards, and the next segment (EEA, Tables 7 to 11; VCA, section 3).

Replies are accepted in the shapes that the papers' prompts ask for too, such as `{"Segment 0": {"explanation": ...,
"score": 70}}`, `{"query1": ...}` and `{"Segment": 3}`, and as arrays of strings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from kinodex.agent.answer_rules import Declining
from kinodex.agent.errors import InvalidReply
from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.notes import LogEntry, Note
from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.reply import (
    REASONING_NAMES,
    Reasoned,
    Reply,
    allowed_actions,
    described,
    read_as,
    with_reasoning,
)
from kinodex.agent.protocol.request import Request
from kinodex.agent.protocol.videos import ScoredSegment, Segment, listed_candidates
from kinodex.agent.replies.schema import NAMED, NULL, Bounds, Schema, one_of
from kinodex.agent.replies.values import Score, WholeNumber
from kinodex.agent.requests.answer import (
    Answered,
    answer_in_words,
    check_answer,
    cited_frames,
    letters,
    read_decision,
    weighed,
)
from kinodex.agent.requests.in_parts import InParts
from kinodex.agent.requests.run_request import RunRequest

MAX_QUERY_CHARACTERS = 300
MAX_QUERIES = 5
MOST_FINDINGS = 4
"""Entries of the log that a round adds."""
ScoreKind = Literal["fused", "reward", "none"]
ACTIONS = ("explore", "answer", "insufficient_evidence")


class SegmentScore(Reply):
    """The promise of one segment for the question, from 0 to 100, after its reason."""

    model_config = described("How much one segment promises for the question, from 0 to 100, and why.")

    segment: WholeNumber = Field(description="its number")
    reasoning: str = Field(default="", description="what its frames suggest about it, in at most 15 words")
    """Shown to the policy too, so that models that think before they write give it as well."""
    score: Score = Field(description="how much it promises, a whole number from 0 to 100 (not 0 to 1)")
    _read_reasoning = read_as(with_reasoning)


class Finding(Reply):
    """Word of one frame, or of a line beside it, about the question: an entry of the log of a search."""

    frame: WholeNumber = Field(description="number of the frame that shows it")
    seen: str = Field(description="what is seen or said there that bears on the question, in at most 15 words")
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


class SegmentScores(Reply):
    """One score for each segment, and what is new for the log of the search; there may be nothing."""

    findings: Annotated[list[Finding], BeforeValidator(_read_findings)] = Field(
        default=[], description="what the new frames show that bears on the question, for the log"
    )
    segments: list[SegmentScore] = Field(description="one for each segment to be scored")

    @model_validator(mode="before")
    @classmethod
    def _accept(cls, value: object) -> object:
        if isinstance(value, list):
            return {"segments": value}
        if not isinstance(value, Mapping) or "segments" in value:
            return value
        beside, scores = {}, []
        for name, each in value.items():
            folded = str(name).casefold()
            if folded in (*REASONING_NAMES, "findings") or folded.startswith(("query", "queries")):
                beside[name] = each  # no segment: reasons, and queries, which some requests ask for in the same reply
            else:
                scores.append({"segment": str(name), **(each if isinstance(each, Mapping) else {"score": each})})
        return {**beside, "segments": scores}


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


class ScoresAndQueries(SegmentScores):
    """One score for each segment, and texts to search for; the list of texts may be empty."""

    queries: list[str] = Field(default=[], description="the search texts")

    @model_validator(mode="before")
    @classmethod
    def _read_queries(cls, value: object) -> object:
        """Read queries by name, "query1" and so on, as the paper's prompt has them."""
        if not isinstance(value, Mapping) or "queries" in value:
            return value
        named = [name for name in value if str(name).casefold().startswith("query")]
        kept = {name: each for name, each in value.items() if name not in named}
        return {**kept, "queries": [value[name] for name in named]}


class _NextStep(Reasoned):
    action: Literal["explore", "answer", "insufficient_evidence"] = Field(description="what to do next")
    segment: WholeNumber | None = Field(description="number of the segment to explore, else null")


class Decision(Answered, _NextStep):
    """The next step: explore one segment, answer, or report that the evidence is missing."""

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
class ProposeQueries(Request[Queries]):
    """Name further texts to search for, seen in `frames` and not yet `known` (EEA section 3.1, Table 11)."""

    Reply = Queries
    template: ClassVar[str] = "propose_queries"
    role: ClassVar[str] = "policy"
    question: Question
    known: tuple[str, ...]
    frames: tuple[ShownFrame, ...]

    def bounds(self) -> Bounds:
        return {"queries": {"maxItems": MAX_QUERIES}}

    def check(self, reply: Queries) -> None:
        check_queries(reply.queries)


@dataclass(frozen=True, kw_only=True)
class ScoreSegments(RunRequest[SegmentScores], InParts[SegmentScores]):
    """Score how promising each of `segments` is, by the frames at its borders (EEA 3.2, Tables 7 and 8).

    In later rounds `history` holds all scores so far (0 to 100) and `parent` the segment that is now divided.
    """

    Reply = SegmentScores
    template: ClassVar[str] = "score_segments"
    role: ClassVar[str] = "reward"
    parts: ClassVar[tuple[str, str, str]] = ("segments", "segments", "segment")
    segments: tuple[Segment, ...]
    frames: tuple[ShownFrame, ...]
    history: tuple[ScoredSegment, ...] = ()
    parent: int | None = None
    scores: ScoreKind = "fused"
    """The scores that the policy will be shown: its prompt and this one begin alike."""
    notes: tuple[Note, ...] = ()
    """What is said and stands on screen at the times of the frames."""
    log: tuple[LogEntry, ...] | None = None
    """What was found before, and the reply adds to it; None: no log is kept."""
    in_full: bool = False
    """The prompt has all of the history with its reasons, as the papers' have; else the best of what is open."""
    fresh: int = 0
    """The number of frames that are new, the last ones; 0: those are at which `segments` meet."""

    def schema(self, *, reasoning: bool = True) -> Schema:
        schema = super().schema(reasoning=reasoning)
        if self.log is not None:
            return schema
        kept = {name: each for name, each in schema[NAMED].items() if name != "findings"}
        return {**schema, NAMED: kept, "required": list(kept)}

    @property
    def new_frames(self) -> tuple[ShownFrame, ...]:
        """The frames at which a segment was divided into `segments`: at the end of one and the start of another.

        By the paper these alone are shown. Where the frames at the segment's own ends are shown too, they are what it
        was chosen for: counted once more they would lead the search back to where it has been.
        """
        if self.fresh:
            return self.frames[-self.fresh :]
        ends = {(part.video_id, part.end_s) for part in self.segments}
        inside = ends & {(part.video_id, part.start_s) for part in self.segments}
        return tuple(frame for frame in self.frames if (frame.video_id, frame.time_s) in inside)

    def bounds(self) -> Bounds:
        return {**super().bounds(), **_findings(self.question)}

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
    """Explore one of `candidates`, answer, or give up (EEA section 3.3, Table 9; VCA section 3.3).

    Candidate scores are fused, 0 to 1, or bare rewards, 0 to 100, or there are none; `frames` are the memory.
    With `must_answer` exploring is over.
    """

    Reply = Decision
    template: ClassVar[str] = "decide"
    candidates: tuple[ScoredSegment, ...]
    frames: tuple[ShownFrame, ...]
    scores: ScoreKind = "fused"
    must_answer: bool = False
    declining: Declining = "allowed"
    notes: tuple[Note, ...] = ()
    """What is said and stands on screen at the times of the frames."""
    log: tuple[LogEntry, ...] | None = None
    """What was found, round by round; None: no log is kept."""
    in_full: bool = False
    """The prompt has all candidates with their reasons, as the papers' have; else those that promise most."""

    @property
    def actions(self) -> tuple[str, ...]:
        return allowed_actions(ACTIONS[1:] if self.must_answer else ACTIONS, self.declining)

    @property
    def instead(self) -> str:
        return super().instead if self.must_answer else "choose a segment to explore, or answer"

    def bounds(self) -> Bounds:
        option = letters(self.question, or_null=len(self.actions) > 1)
        bounds: dict[str, Mapping[str, object]] = {"action": one_of(self.actions), **option, "evidence": cited_frames()}
        return {**bounds, **weighed(self.question), "segment": NULL} if self.must_answer else bounds

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
        if number not in {each.segment.number for each in self.candidates if each.explorable}:
            listed = sorted(
                each.segment.number for each in listed_candidates(self.candidates, self.scores, self.in_full)
            )
            raise InvalidReply(f"segment {number} cannot be explored; choose one of {listed}, or answer")


def _findings(question: Question) -> Bounds:
    letters = [letter for letter, _ in question.lettered]
    named = {"items": {"type": "string", "enum": letters}} if letters else {"maxItems": 0}
    return {"findings": {"maxItems": MOST_FINDINGS}, "findings.supports": named, "findings.excludes": named}


def check_queries(queries: Sequence[str]) -> None:
    for query in queries:
        if not query.strip() or len(query) > MAX_QUERY_CHARACTERS:
            raise InvalidReply(f"a query is empty or over {MAX_QUERY_CHARACTERS} characters; use a few words")
