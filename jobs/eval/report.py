"""The report of a run: every contender over all questions, by category and length, and every two compared.

`report.json` holds these types; the page and the plots draw them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import combinations, product
from operator import attrgetter
from pathlib import Path
from statistics import fmean
from typing import Any

from kinodex.agent.answer_rules import AnswerRules
from kinodex.index.kinds import KINDS
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.contenders import Contender, ItemResult, Judgement
from kinodex.jobs.eval.folder import REPORT, IndexCost, Run, RunPlan, adapter_of, comparable, read_run
from kinodex.jobs.eval.items import Item, MissingVideo, Problem, Scoring
from kinodex.jobs.eval.score import (
    Estimate,
    Questions,
    ScoredResult,
    Spread,
    by_contender,
    difference,
    estimate,
    evidence_suffices,
    exact_p_value,
    group_scores,
    has_answer,
    p_value,
    right_without_evidence,
    spread,
)
from kinodex.jobs.json_files import write_whole

COSTS: Mapping[str, Callable[[ItemResult], float]] = {
    name: attrgetter(name if name == "rounds" else f"ledger.{name}")
    for name in (
        *("frames", "frames_with_kept", "frame_shows", "rounds", "calls", "input_tokens", "output_tokens", "tokens"),
        *("cost", "seconds", "model_seconds"),
    )
}
"""Costs of one question by the names of `Standing.costs`; money in the currency of the user's prices.

Tokens are those in and out, with the estimate for calls whose server does not count.
"""
NOTICES: Mapping[str, Callable[[ItemResult], int]] = {
    what: attrgetter(f"ledger.{name}")
    for what, name in (
        ("calls without a count of tokens", "unknown_calls"),
        ("estimated tokens, among the tokens", "estimated_tokens"),
        ("contact sheets in the place of frames", "sheets"),
        ("lines of text on screen", "screen_lines"),
        ("scenes and chapters listed", "chapters"),
        ("videos without the scenes and chapters that a setting asks for", "videos_without_chapters"),
        ("frames left out of a request", "left_out_frames"),
        ("replies that gave up and were not accepted", "declined"),
    )
}
"""Events that a reader must know of, counted over all questions of a contender."""

DURATION = "duration"
MINUTE_S = 60.0
LENGTHS = ((5, "< 5 min"), (30, "5 to 30 min"), (60, "30 to 60 min"), (100, "60 to 100 min"))
LONGER = "> 100 min"
IN_ORDER = (*(name for _, name in LENGTHS), LONGER, "short", "medium", "long")
"""Categories in their order; all others are sorted by number or name."""


@dataclass(frozen=True, slots=True)
class Depth:
    """Questions that ended after so many rounds: their number and share, and the accuracy among them (Figure 7)."""

    rounds: int
    questions: int
    share: float
    accuracy: float


@dataclass(frozen=True, slots=True)
class Standing:
    """Figures of one contender over all questions.

    `accuracy` is the mean score over its most (1, or 3 for judged answers). `valid` is the same over answers that could
    be scored, for benchmarks that report it. `unanswered` counts questions without an option (or text), among them
    `invalid`, whose replies could not be used, and `errors`, which got no answer at all. `evidence` is the share of
    questions whose evidence touches a true range, cited or not; `cited` the same of evidence that was cited, `shown` of
    all that was ever shown or read, with their mean temporal overlaps (tIoU), None too for one that saw nothing;
    `grounding` the share whose true clip was visited; None where the benchmark does not tell. `costs` are those of
    `COSTS` a question; none of them are known of an `imported` contender. `notices` count what happened in all its
    questions together and may not be overlooked. `right_without_evidence` and `evidence_suffices` are shares of the
    verified answers (`kinodex.jobs.eval.score`).
    `groups` are accuracies by breakdown and category, "duration" among the breakdowns. `entropy` holds every round's
    "intrinsic" and "fused" one (EEA, Figure 4); `distance` how many seconds lie between the nearest true range and the
    segment "chosen" next or the one with the "best" score, 0 where they overlap (VCA, Figure 5); the lists are empty
    where there is none. `valid_groups` are as `groups` over the answers behind `valid`; empty without it.
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
    cited: Estimate | None = None
    cited_overlap: Estimate | None = None
    shown: Estimate | None = None
    shown_overlap: Estimate | None = None
    right_without_evidence: Estimate | None = None
    evidence_suffices: Estimate | None = None
    imported: bool = False
    notices: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two contenders on the same questions: mean of a's score less b's, clustered by video, and counts of right ones.

    `p_value` is of a two-sided t-test of this pair alone, None where it cannot be had; `exact_p_value` is McNemar's. A
    judged answer is right with 2 of 3 or more.
    """

    a: str
    b: str
    difference: Estimate
    p_value: float | None
    both: int
    only_a: int
    only_b: int
    neither: int
    exact_p_value: float | None = None


@dataclass(frozen=True, slots=True)
class EvalReport:
    """Figures of a whole run. `chance` is the accuracy that guessing would have; None for free-form questions.

    `facts` are the other things that one must know to repeat the run, in words, by name.
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
    missing: tuple[MissingVideo, ...]
    problems: tuple[Problem, ...]
    index_cost: IndexCost
    standings: tuple[Standing, ...]
    pairs: tuple[Pair, ...]
    complete: bool
    simulated: bool = False
    """Always so: report.json had it when runs could be simulated."""
    scoring: Scoring = "options"
    facts: Mapping[str, str] = field(default_factory=dict)


def report_run(folder: Path) -> EvalReport:
    """Make the report of a run, and write it as report.json into the run's folder."""
    run = read_run(folder)
    report = make_report(run.plan, run.items, run.records, run.judgements)
    sources = {
        each.system.name: "; ".join((f"imported from {each.source}, sha256 {each.sha256[:12]}", *each.notes))
        for each in run.imported
    }
    report = replace(report, facts={**report.facts, **sources})
    write_whole(folder / REPORT, as_json(report))
    return report


def as_json(report: EvalReport) -> bytes:
    """Encode a report as report.json has it."""
    return adapter_of(EvalReport).dump_json(report, indent=2) + b"\n"


def make_report(
    plan: RunPlan,
    items: Sequence[Item],
    records: Iterable[ItemResult],
    judgements: Sequence[Judgement] = (),
) -> EvalReport:
    """Make the report of a run, finished or not: from its items, their results, and the judgements of them.

    `items` are completed with the library's lengths and clips. Of several judges the last to begin counts. Raises
    `UsageError` for a record of another run.
    """
    found = by_contender(plan, items, records)
    judge = judgements[-1].judge if judgements else None
    verdicts = {(each.contender, each.item_id): each for each in judgements if each.judge == judge}
    about = Questions(plan.scoring, tuple(items), plan.items, verdicts)
    entered = [each for each in plan.contenders if found[each.name]]
    results = {each.name: about.score_all(found[each.name]) for each in entered}
    unsettled = plan.scoring == "judge" and any(
        each.score is None and each.item.truth.known for result in results.values() for each in result
    )
    return EvalReport(
        benchmark=plan.benchmark,
        title=plan.title,
        library=plan.library,
        models=plan.models,
        judge=judge,
        asked=len(items),
        questions=plan.questions,
        videos=len({item.video for item in items}),
        chance=chance(plan.scoring, items),
        missing=plan.missing,
        problems=plan.problems,
        index_cost=plan.index_cost,
        standings=tuple(standing(each, plan.scoring, results[each.name]) for each in entered),
        pairs=tuple(pair(a.name, b.name, results[a.name], results[b.name]) for a, b in combinations(entered, 2)),
        complete=not unsettled and all(len(found[each.name]) == len(items) for each in plan.contenders),
        scoring=plan.scoring,
        facts=_facts(plan),
    )


def standing(contender: Contender, scoring: Scoring, results: Sequence[ScoredResult]) -> Standing:
    """Compute one contender's figures over its scored answers, at least one."""
    records = [each.record for each in results]
    known = [each for each in results if each.score is not None]
    judged, imported = scoring == "judge", any(each.imported for each in records)
    saw = results if any(each.visited or each.evidence for each in records) else []
    return Standing(
        name=contender.name,
        agent=contender.agent,
        settings=contender.settings,
        is_control=contender.is_control,
        accuracy=_mean(known, _score),
        valid=_mean([each for each in known if each.valid], _score) if judged else None,
        unanswered=sum(not has_answer(each, scoring) for each in records),
        invalid=sum(each.status == "invalid" for each in records),
        errors=sum(bool(each.error) for each in records),
        evidence=_share(results, lambda each: each.hit),
        grounding=_share(results, lambda each: each.visited),
        costs={} if imported else {name: spread([cost(each) for each in records]) for name, cost in COSTS.items()},
        groups=by_group(known) | group_scores(known),
        depths=() if imported else _depths(known),
        frames=() if imported else tuple(each.ledger.frames for each in records),
        entropy={
            "intrinsic": tuple(e.intrinsic for each in records for e in each.search if e.intrinsic is not None),
            "fused": tuple(e.fused for each in records for e in each.search if e.fused is not None),
        },
        distance={
            "chosen": tuple(seconds for each in results for seconds in each.chosen_s),
            "best": tuple(seconds for each in results for seconds in each.best_s),
        },
        valid_groups=by_group([each for each in known if each.valid]) if judged else {},
        cited=_share(saw, lambda each: None if each.cited is None else each.cited.hit),
        cited_overlap=_share(saw, lambda each: None if each.cited is None else each.cited.overlap),
        shown=_share(saw, lambda each: None if each.shown is None else each.shown.hit),
        shown_overlap=_share(saw, lambda each: None if each.shown is None else each.shown.overlap),
        right_without_evidence=_share(results, right_without_evidence),
        evidence_suffices=_share(results, evidence_suffices),
        imported=imported,
        notices={name: total for name, count in NOTICES.items() if (total := sum(map(count, records)))},
    )


def pair(a: str, b: str, results_a: Iterable[ScoredResult], results_b: Iterable[ScoredResult]) -> Pair:
    """Compare two contenders on the questions of which both have a score; more than half of it is right."""
    others = {each.item.item_id: _score(each) for each in results_b if each.score is not None}
    both = [each for each in results_a if each.score is not None and each.item.item_id in others]
    scores = [(_score(each), others[each.item.item_id]) for each in both]
    found = difference([one - other for one, other in scores], [each.item.video for each in both])
    right = [(one > 0.5, other > 0.5) for one, other in scores]
    both_right, only_a, only_b, neither = map(right.count, ((True, True), (True, False), (False, True), (False, False)))
    exact = exact_p_value(only_a, only_b)
    return Pair(a, b, found, p_value(found), both_right, only_a, only_b, neither, exact)


def by_group(results: Iterable[ScoredResult]) -> dict[str, dict[str, Estimate]]:
    """Compute the accuracy by breakdown and category; a question counts once in each of its categories (as in LVBench).

    A benchmark's own breakdown by "duration" (Video-MME) takes the place of the one by minutes (EEA, Figure 8).
    """
    members: dict[str, dict[str, list[ScoredResult]]] = defaultdict(lambda: defaultdict(list))
    for each in results:
        for breakdown, categories in {DURATION: _length(each.item), **each.item.groups}.items():
            for category in set(categories):
                members[breakdown][category].append(each)
    return {
        breakdown: {name: _mean(categories[name], _score) for name in sorted(categories, key=_place)}
        for breakdown, categories in sorted(members.items(), key=lambda each: each[0] == DURATION)
    }


def chance(scoring: Scoring, items: Sequence[Item]) -> float | None:
    """Mean accuracy of a guess; None where answers are judged."""
    return fmean(1.0 / len(item.question.options) for item in items) if scoring == "options" and items else None


def _facts(plan: RunPlan) -> dict[str, str]:
    limits = {name: getattr(plan.budget, name) for name in ("rounds", "frames", "tokens", "seconds", "cost")}
    set_limits = ", ".join(f"{value:g} {name}" for name, value in limits.items() if value is not None)
    return {
        "annotations": plan.annotations,
        "sha256 of the questions": plan.annotations_sha256,
        "space": plan.space,
        "hidden from agents": ", ".join(KINDS[kind].label for kind in plan.hide) or "nothing",
        "captions that agents make": "kept for later questions" if plan.keep_captions else "paid for by every question",
        "budget a question": set_limits or "none",
        "insufficient evidence": _in_words(plan.rules),
        "requests at once": "not known" if plan.at_once is None else str(plan.at_once),
        "prices for a million tokens": "; ".join(f"{role}: {price}" for role, price in plan.prices.items()) or "none",
        "part of the benchmark": plan.part,
        "questions chosen": "all" if plan.limit is None else f"{plan.limit} with seed {plan.seed}",
        "kinodex": plan.version,
    }


def _in_words(rules: AnswerRules | None) -> str:
    if rules is None:
        return "not recorded (an earlier kinodex: accepted at any time)"
    if rules.force_choice:
        return "never accepted: an answer had to be chosen (--force-choice)"
    if rules.early_insufficient:
        return "accepted at any time (--early-insufficient)"
    return "accepted when nothing was left to look at or a budget ended the search"


def _score(each: ScoredResult) -> float:
    return each.score or 0.0


def _mean(results: Sequence[ScoredResult], value: Callable[[ScoredResult], float]) -> Estimate:
    return estimate([value(each) for each in results], [each.item.video for each in results], 0.0, 1.0)


def _share(results: Iterable[ScoredResult], what: Callable[[ScoredResult], float | None]) -> Estimate | None:
    """Share of answers for which something is true, or its mean, of those where it is known; None without any."""
    known = [each for each in results if what(each) is not None]
    return _mean(known, lambda each: float(what(each) or 0.0)) if known else None


def _depths(results: Sequence[ScoredResult]) -> tuple[Depth, ...]:
    ended: dict[int, list[float]] = defaultdict(list)
    for each in results:
        ended[each.record.rounds].append(_score(each))
    found = sorted(ended.items())
    return tuple(Depth(rounds, len(each), len(each) / len(results), fmean(each)) for rounds, each in found)


def _length(item: Item) -> tuple[str, ...]:
    if item.duration_s is None:
        return ()
    return (next((name for minutes, name in LENGTHS if item.duration_s < minutes * MINUTE_S), LONGER),)


def _place(category: str) -> tuple[float, float, str]:
    known = IN_ORDER.index(category) if category in IN_ORDER else len(IN_ORDER)
    return known, float(category) if category.replace(".", "", 1).isdecimal() else 0.0, category


# Compare two runs on the questions that both asked.

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
