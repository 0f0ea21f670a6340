"""Items without their targets, the context of a run, and results: all that crosses between the processes that ask.

Nothing here knows what is true. A test holds that who asks imports this file, and neither `folder` nor `items`, which
hold the true answers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from kinodex.agent.answer import Status
from kinodex.agent.answer_rules import USUAL, AnswerRules
from kinodex.agent.evidence import Evidence
from kinodex.agent.limits.budget import Budget
from kinodex.agent.limits.ledger import Ledger
from kinodex.agent.protocol.question import Question
from kinodex.index.kinds import KindName
from kinodex.jobs.eval.contenders import Contender
from kinodex.jobs.models import ModelChoice


@dataclass(frozen=True, slots=True)
class ItemInput:
    """An item without its target: the question as an agent gets it, and the library's videos that it is about."""

    item_id: str
    question: Question
    video_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunContext:
    """Settings that all items of a run share; a worker needs no more. `otlp` is the collector of every run's spans."""

    library: str
    choice: ModelChoice
    budget: Budget
    detector: str | None = None
    hide: tuple[KindName, ...] = ()
    keep_captions: bool = True
    traces: bool = False
    space: str | None = None
    rules: AnswerRules = USUAL
    otlp: str | None = None


@dataclass(frozen=True, slots=True)
class Round:
    """One round of a tree search, for the figures of EEA and VCA; None is what the agent does not have.

    `intrinsic` and `fused` are the normalised entropies, 0 to 1, of the softmax over the candidates' rewards and over
    their fused scores, both from 0 to 100. `chosen` is the segment explored next, `best` that of the highest score.
    """

    intrinsic: float | None
    fused: float | None
    chosen: Evidence | None
    best: Evidence | None


@dataclass(frozen=True, slots=True)
class ItemResult:
    """One item solved by one contender. `error` is one line where no answer came at all; that counts as wrong.

    Of an `unreachable` one the endpoint gave no reply: the next run asks it again, after all others. `visited` are
    what was shown or read, in time order. `evidence_cited` is False where `evidence` is all that the model had
    before it last. Of a `senseless` one no reply could be used. An `imported` answer was given elsewhere: its cost is
    not known. `supported` says if a second look at the evidence alone came to the answer (`--verify`).
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
    """A judge model's score, 0 to 3, of one answer; None if it gave no valid one."""

    contender: str
    item_id: str
    judge: str
    score: int | None
    asked: str
    """The digest of the question, its true answer and the answer that was judged."""
    prompt: str
    """The digest of the judge's instructions."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SolvedItem:
    """The result of an item, and its trace as compressed JSON lines if traces are on, else None."""

    result: ItemResult
    trace: bytes | None = None


Solve = Callable[[Contender, ItemInput], Awaitable[SolvedItem]]


def failed_result(
    contender: Contender, item: ItemInput, error: str, spent: Ledger | None = None, *, unreachable: bool = False
) -> ItemResult:
    """Make the result of an item that got no answer at all, though its calls until then were paid."""
    line, ledger = " ".join(error.split()), spent or Ledger()
    return ItemResult(
        contender.name, item.item_id, None, None, None, "", 0, ledger, (), error=line, unreachable=unreachable
    )
