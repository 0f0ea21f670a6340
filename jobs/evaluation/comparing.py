"""Two runs side by side, on the questions that both asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from itertools import product
from typing import Any

from jobs.benchmarks.item import Item, Scoring
from jobs.errors import UsageError
from jobs.evaluation.figures import Questions, pair, standing
from jobs.evaluation.record import Record
from jobs.evaluation.report import Pair, Standing
from jobs.evaluation.reporting import Run
from jobs.evaluation.scoring import Scored

COMPARED = (
    "annotations_sha256",
    "library",
    "space",
    "index_cost",
    "models",
    "budget",
    "subtitles",
    "limit",
    "seed",
    "version",
)
"""What a plan says besides its questions and contenders that can make two runs differ."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that two runs were not the same in, in words: of the one, and of the other."""

    what: str
    one: str
    other: str


@dataclass(frozen=True, slots=True)
class Versus:
    """A contender of the one run and one of the other, on the questions that both answered."""

    pair: Pair
    a: Standing
    b: Standing


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs of one benchmark. `shared` counts the questions that both ask, `only_one` and `only_other` the rest.

    `changed` are questions that have the same id in both and do not ask the same, or have another truth; they are left
    out.
    """

    title: str
    scoring: Scoring
    one: str
    other: str
    differences: tuple[Difference, ...]
    shared: int
    only_one: int
    only_other: int
    changed: int
    versus: tuple[Versus, ...]


def compare(one: Run, other: Run, *, every: bool = False) -> Comparison:
    """Contenders of the same name in both runs held against each other; all against all if no name is in both.

    `every`: all against all in any case.

    Raises:
        UsageError: the runs are not of one benchmark, or no question is the same in both.
    """
    if one.plan.benchmark != other.plan.benchmark:
        raise UsageError(
            f"{one.folder} is a run of {one.plan.benchmark} and {other.folder} one of {other.plan.benchmark}; "
            "compare two runs of one benchmark"
        )
    others = {item.item_id: item for item in other.items}
    both = [(item, others[item.item_id]) for item in one.items if item.item_id in others]
    same = [(mine, theirs) for mine, theirs in both if _same(mine, theirs)]
    if not same:
        raise UsageError(
            f"{one.folder} and {other.folder} have no question in common; compare runs of the same annotations with "
            "the same --limit and --seed"
        )
    return Comparison(
        title=one.plan.title,
        scoring=one.plan.scoring,
        one=str(one.folder),
        other=str(other.folder),
        differences=_differences(one, other),
        shared=len(same),
        only_one=len(one.items) - len(both),
        only_other=len(other.items) - len(both),
        changed=len(both) - len(same),
        versus=_all_versus(one, other, [mine for mine, _ in same], [theirs for _, theirs in same], every),
    )


def _same(mine: Item, theirs: Item) -> bool:
    known = [(item.video, item.question, item.truth.option, item.truth.text) for item in (mine, theirs)]
    return known[0] == known[1]


def _all_versus(one: Run, other: Run, mine: list[Item], theirs: list[Item], every: bool) -> tuple[Versus, ...]:
    names = [[each.name for each in run.plan.contenders] for run in (one, other)]
    equal = [(name, name) for name in names[0] if name in names[1]]
    wanted = list(product(*names)) if every or not equal else equal
    found = (_versus(one, other, a, b, mine, theirs) for a, b in wanted)
    return tuple(each for each in found if each is not None)


def _versus(one: Run, other: Run, a: str, b: str, mine: list[Item], theirs: list[Item]) -> Versus | None:
    """None where the two have no answer to the same question."""
    first, second = _records(one, a), _records(other, b)
    answered = first.keys() & second.keys()
    results = [_scored(one, mine, first, answered), _scored(other, theirs, second, answered)]
    if not results[0]:
        return None
    return Versus(
        pair(a, b, *results),
        _standing(one, a, results[0]),
        _standing(other, b, results[1]),
    )


def _records(run: Run, contender: str) -> dict[str, Record]:
    return {each.item_id: each for each in run.records if each.contender == contender}


def _scored(run: Run, items: list[Item], records: Mapping[str, Record], answered: set[str]) -> list[Scored]:
    verdicts = {(each.contender, each.item_id): each for each in run.judgements if each.judge == run.judge}
    asked = tuple(item for item in items if item.item_id in answered)
    return Questions(run.plan.scoring, asked, run.plan.items, verdicts).scored(records)


def _standing(run: Run, name: str, results: list[Scored]) -> Standing:
    contender = next(each for each in run.plan.contenders if each.name == name)
    return standing(contender, run.plan.scoring, results)


def _differences(one: Run, other: Run) -> tuple[Difference, ...]:
    pairs: dict[str, tuple[Any, Any]] = {
        name.replace("_", " "): (getattr(one.plan, name), getattr(other.plan, name)) for name in COMPARED
    }
    pairs["judge"] = (one.judge, other.judge)
    theirs = {each.name: each.settings for each in other.plan.contenders}
    for each in one.plan.contenders:
        if each.name in theirs:
            pairs[f"settings of {each.name}"] = (each.settings, theirs[each.name])
    return tuple(Difference(what, _told(a), _told(b)) for what, (a, b) in pairs.items() if a != b)


def _told(value: Any) -> str:
    if is_dataclass(value):
        value = {each.name: getattr(value, each.name) for each in fields(value)}
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {each}" for name, each in value.items() if each is not None) or "none"
    return "none" if value is None else str(value)
