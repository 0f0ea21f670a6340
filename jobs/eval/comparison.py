"""Two runs compared on the questions that both asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from itertools import product
from typing import Any

from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.folder import Run, comparable
from kinodex.jobs.eval.items import Item, Scoring
from kinodex.jobs.eval.report import Pair, Standing, pair, standing
from kinodex.jobs.eval.scoring.answers import Questions, ScoredResult, by_contender

COMPARED = (
    *("annotations_sha256", "library", "space", "index_cost", "models", "at_once", "prices", "budget", "rules"),
    *("hide", "keep_captions", "part", "limit", "seed", "version"),
)
"""Fields of a plan, besides items and contenders, in which two runs can differ."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between two runs, in words: of the one, and of the other."""

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

    `changed` have one id in both and another question or answer, and are left out. `unpaired` were not compared.
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
    unpaired: tuple[str, ...]
    versus: tuple[Versus, ...]


def compare_runs(one: Run, other: Run, *, every: bool = False) -> Comparison:
    """Compare contenders of the same name in both runs; all with all if no name is in both, or with `every`."""
    if one.plan.benchmark != other.plan.benchmark:
        raise UsageError(
            f"{one.folder} is a run of {one.plan.benchmark} and {other.folder} one of {other.plan.benchmark}; "
            "compare two runs of one benchmark"
        )
    others = {item.item_id: item for item in other.items}
    both = [(item, others[item.item_id]) for item in one.items if item.item_id in others]
    known = [[(it.video, it.question, it.truth.option, it.truth.text) for it in pair] for pair in both]
    same = [pair for pair, (mine, theirs) in zip(both, known, strict=True) if mine == theirs]
    if not same:
        raise UsageError(
            f"{one.folder} and {other.folder} have no question in common; compare runs of the same annotations with "
            "the same --only, --ids, --limit and --seed"
        )
    mine, theirs = _answers(one, tuple(a for a, _ in same)), _answers(other, tuple(b for _, b in same))
    equal = [(name, name) for name in mine if name in theirs]
    wanted = list(product(mine, theirs)) if every or not equal else equal
    tried = [_versus(one, other, (a, b), mine[a], theirs[b]) for a, b in wanted]
    versus = tuple(each for each in tried if each is not None)
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
        unpaired=tuple(sorted({*mine, *theirs} - {name for each in versus for name in (each.pair.a, each.pair.b)})),
        versus=versus,
    )


def _answers(run: Run, items: tuple[Item, ...]) -> dict[str, dict[str, ScoredResult]]:
    """Score the answers to some items, by contender and item id, in the order of the plan."""
    verdicts = {(each.contender, each.item_id): each for each in run.judgements if each.judge == run.judge}
    questions = Questions(run.plan.scoring, items, run.plan.items, verdicts)
    records = by_contender(run.plan, run.items, run.records)
    return {name: {each.item.item_id: each for each in questions.score_all(found)} for name, found in records.items()}


def _versus(
    one: Run, other: Run, names: tuple[str, str], mine: Mapping[str, ScoredResult], theirs: Mapping[str, ScoredResult]
) -> Versus | None:
    """Compare two contenders; None if they have answered no question in common."""
    both = [item_id for item_id in mine if item_id in theirs]
    if not both:
        return None
    results = [[answers[item_id] for item_id in both] for answers in (mine, theirs)]
    a, b = (
        standing(next(each for each in run.plan.contenders if each.name == name), run.plan.scoring, answers)
        for run, name, answers in zip((one, other), names, results, strict=True)
    )
    return Versus(pair(*names, *results), a, b)


def _differences(one: Run, other: Run) -> tuple[Difference, ...]:
    pairs: dict[str, tuple[Any, Any]] = {
        name.replace("_", " "): (comparable(one.plan, name), comparable(other.plan, name)) for name in COMPARED
    }
    pairs["judge"] = (one.judge, other.judge)
    theirs = {each.name: each for each in other.plan.contenders}
    for each in one.plan.contenders:
        if each.name in theirs:
            pairs[f"settings of {each.name}"] = (each.settings, theirs[each.name].settings)
            pairs[f"code of {each.name}"] = (each.code, theirs[each.name].code)
    return tuple(Difference(what, _as_text(a), _as_text(b)) for what, (a, b) in pairs.items() if a != b)


def _as_text(value: Any) -> str:
    if is_dataclass(value):
        value = {each.name: getattr(value, each.name) for each in fields(value)}
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {each}" for name, each in value.items() if each is not None) or "none"
    return "none" if value is None else str(value)
