"""What a run is: settled before its first question, kept in its folder, and the same whenever it is resumed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agent.core.budget import Budget
from jobs.benchmarks.item import Problem, Scoring
from jobs.benchmarks.subset import WHOLE
from jobs.evaluation.run.contenders import Contender


@dataclass(frozen=True, slots=True)
class Missing:
    """A video of the benchmark that the library lacks, why, and how many of its questions are left out for it."""

    video: str
    why: str
    questions: int


@dataclass(frozen=True, slots=True)
class IndexCost:
    """What indexing the asked-about videos took, to be amortised: `frames` embedded, `captions` kept, in `videos`."""

    videos: int
    hours: float
    frames: int
    captions: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The questions, contenders and models of a run; two runs of equal plans ask the same.

    `items` maps ids to the library's videos that each is asked about, and `space` is the one of the library's that is
    searched. `questions` is how many the benchmark has, before `part`, `limit` and missing videos; `part` says in words
    which of them are meant. `models` says by role who answers (with endpoint, without any key). With `keep_captions`
    what agents have captioned is kept for later questions, so that what those cost hangs on the order.
    """

    benchmark: str
    title: str
    annotations: str
    annotations_sha256: str
    scoring: Scoring
    library: str
    space: str
    contenders: tuple[Contender, ...]
    models: Mapping[str, str]
    budget: Budget
    subtitles: bool
    keep_captions: bool
    limit: int | None
    seed: int
    questions: int
    items: Mapping[str, tuple[str, ...]]
    missing: tuple[Missing, ...]
    problems: tuple[Problem, ...]
    index_cost: IndexCost
    version: str
    part: str = WHOLE
