"""Types of a run that cross between processes: samples without their targets, the run's context, and results."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from agent.answer import Evidence, Status
from agent.core.answer_rules import USUAL, AnswerRules
from agent.core.budget import Budget, Ledger
from agent.core.question import Question
from jobs.evaluation.run.systems import System
from jobs.model_choice import ModelChoice


@dataclass(frozen=True, slots=True)
class SampleInput:
    """A sample without its target: the question as an agent gets it, and the library's videos that it is about."""

    item_id: str
    question: Question
    video_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunContext:
    """Settings that all samples of a run share; a worker needs no more than this, on whatever machine.

    `space` is one of the library's, by name or digest; None is its own. `otlp` is the collector that gets every run as
    spans.
    """

    library: str
    choice: ModelChoice
    budget: Budget
    detector: str | None = None
    subtitles: bool = True
    keep_captions: bool = True
    traces: bool = False
    space: str | None = None
    rules: AnswerRules = USUAL
    otlp: str | None = None
    screen_text: bool = True


@dataclass(frozen=True, slots=True)
class Round:
    """One round of a tree search, for the figures of EEA and VCA.

    `intrinsic` and `fused` are the normalised entropies, 0 to 1, of the softmax over the candidates' rewards and over
    their fused scores, both on a scale of 0 to 100; None where the agent has none. `chosen` is the segment that was
    explored next, `best` the one with the highest score; None where the round ended the search.
    """

    intrinsic: float | None
    fused: float | None
    chosen: Evidence | None
    best: Evidence | None


@dataclass(frozen=True, slots=True)
class SampleResult:
    """One sample solved by one system. `error` is one line where no answer came at all; that counts as wrong.

    Of an `unreachable` one the endpoint gave no reply in the end: the next run asks it again, after all others.
    `visited` are the ranges that were shown or read, in time order, for grounding. `evidence_cited` is False where the
    answer cited nothing, so that `evidence` is all that the model had before it last; results of older runs do not say.
    Of a `senseless` one no reply of the models could be used. An `imported` answer was given elsewhere: what it cost
    and what it saw is not known. `supported` says if a second look at the evidence alone came to the answer; None
    without the gate (`--verify`).
    """

    contender: str
    item_id: str
    status: Status | None
    option: int | None
    text: str | None
    reason: str
    rounds: int
    ledger: Ledger
    evidence: tuple[Evidence, ...]
    visited: tuple[Evidence, ...] = ()
    search: tuple[Round, ...] = ()
    error: str = ""
    evidence_cited: bool = True
    imported: bool = False
    senseless: bool = False
    supported: bool | None = None
    unreachable: bool = False


@dataclass(frozen=True, slots=True)
class Judgement:
    """A judge model's score, 0 to 3, of one free-form answer; None if it returned no valid one.

    `asked` is the digest of what was judged, `prompt` that of the judge's instructions; "" in older runs.
    """

    contender: str
    item_id: str
    judge: str
    score: int | None
    reason: str = ""
    asked: str = ""
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class SolvedSample:
    """The result of a sample, and its trace as compressed JSON lines if traces are on, else None."""

    result: SampleResult
    trace: bytes | None = None


Solve = Callable[[System, SampleInput], Awaitable[SolvedSample]]


def failed_result(
    system: System, sample: SampleInput, error: str, spent: Ledger | None = None, *, unreachable: bool = False
) -> SampleResult:
    """Make the result of a sample that got no answer at all, though its calls until then were paid."""
    line, ledger = " ".join(error.split()), spent or Ledger()
    return SampleResult(
        system.name, sample.item_id, None, None, None, "", 0, ledger, (), error=line, unreachable=unreachable
    )
