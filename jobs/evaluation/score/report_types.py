"""What a report says of a run, as plain data: `report.json` is this, and the page and the plots draw it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jobs.benchmarks.item import Problem, Scoring
from jobs.evaluation.run.plan import IndexCost, Missing


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over questions with its standard error clustered by video, and a 95 % confidence interval.

    `error`, `low` and `high` are None where there are fewer than two clusters. Over 0 questions (nothing that could be
    scored) the mean is 0 and says nothing.
    """

    mean: float
    error: float | None
    low: float | None
    high: float | None
    questions: int
    clusters: int


@dataclass(frozen=True, slots=True)
class Spread:
    """How something is distributed over questions."""

    mean: float
    median: float
    p90: float
    total: float


@dataclass(frozen=True, slots=True)
class Depth:
    """Questions that ended after so many rounds: their number and share, and the accuracy among them (Figure 7)."""

    rounds: int
    questions: int
    share: float
    accuracy: float


@dataclass(frozen=True, slots=True)
class Standing:
    """One contender over all questions.

    `accuracy` is the mean score over its most (1, or 3 for judged answers). `valid` is the same over answers that could
    be scored, for benchmarks that report it. `unanswered` counts questions without an option (or text), among them
    `invalid`, whose replies could not be used, and `errors`, which got no answer at all. `evidence` is the share of
    questions whose evidence touches a true range, `grounding` the share whose true clip was visited; None where the
    benchmark does not tell. `costs` are those of `jobs.evaluation.score.aggregate.COSTS` a question. `groups` are accuracies by
    breakdown and category, "duration" among the breakdowns. `entropy` holds every round's "intrinsic" and "fused" one
    (EEA, Figure 4); `distance` how many seconds lie between the nearest true range and the segment "chosen" next or
    the one with the "best" score, 0 where they overlap (VCA, Figure 5); the lists are empty where there is none.
    `valid_groups` are as `groups` over the answers behind `valid`; empty without it.
    """

    name: str
    agent: str
    settings: Mapping[str, str | bool | int | float]
    is_control: bool
    accuracy: Estimate
    valid: Estimate | None
    unanswered: int
    invalid: int
    errors: int
    evidence: Estimate | None
    grounding: Estimate | None
    costs: Mapping[str, Spread]
    groups: Mapping[str, Mapping[str, Estimate]]
    depths: tuple[Depth, ...]
    frames: tuple[int, ...]
    entropy: Mapping[str, tuple[float, ...]]
    distance: Mapping[str, tuple[float, ...]]
    valid_groups: Mapping[str, Mapping[str, Estimate]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two contenders on the same questions: mean of a's score less b's, clustered by video, and who was right where.

    `p_value` is that of a two-sided t-test, of this pair alone; None where it cannot be had. A judged answer is right
    with 2 of 3 or more.
    """

    a: str
    b: str
    difference: Estimate
    p_value: float | None
    both: int
    only_a: int
    only_b: int
    neither: int


@dataclass(frozen=True, slots=True)
class Report:
    """A whole run. `chance` is the accuracy that guessing would have; None for free-form questions.

    `simulated` marks what no model and no video stands behind; everything drawn from it must say so. `facts` are the
    other things that one must know to repeat the run, in words, by name.
    """

    benchmark: str
    title: str
    library: str
    models: Mapping[str, str]
    judge: str | None
    asked: int
    questions: int
    videos: int
    chance: float | None
    missing: tuple[Missing, ...]
    problems: tuple[Problem, ...]
    index_cost: IndexCost
    standings: tuple[Standing, ...]
    pairs: tuple[Pair, ...]
    complete: bool
    simulated: bool = False
    scoring: Scoring = "options"
    facts: Mapping[str, str] = field(default_factory=dict)
