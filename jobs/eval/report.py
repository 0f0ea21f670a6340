"""The report of a run: every contender over all questions, by category and length, and every two compared.

`report.json` holds these types; the page and the plots draw them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from operator import attrgetter
from pathlib import Path
from statistics import fmean

from kinodex.agent.answer_rules import AnswerRules
from kinodex.index.kinds import KINDS
from kinodex.jobs.eval.contenders import Contender
from kinodex.jobs.eval.folder import REPORT, IndexCost, RunPlan, adapter_of, read_run
from kinodex.jobs.eval.items import Item, Problem, Scoring
from kinodex.jobs.eval.results import ItemResult, Judgement
from kinodex.jobs.eval.scoring.answers import Questions, ScoredResult, by_contender, has_answer
from kinodex.jobs.eval.scoring.estimates import Estimate, Spread, difference, estimate, exact_p_value, p_value, spread
from kinodex.jobs.eval.scoring.gate import evidence_suffices, right_without_evidence
from kinodex.jobs.eval.scoring.groups import group_scores
from kinodex.jobs.eval.video_names import MissingVideo
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
    """Questions that ended after this many rounds: their number and share, and the accuracy among them (Figure 7)."""

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
    verified answers (`kinodex.jobs.eval.scoring.gate`).
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


WHEN_ACCEPTED = "accepted when nothing was left to look at or a budget ended the search"


def _in_words(rules: AnswerRules) -> str:
    if rules.force_choice:
        return "never accepted: an answer had to be chosen (--force-choice)"
    if rules.early_insufficient:
        return "accepted at any time (--early-insufficient)"
    if rules.force_choice is None:
        return f"never accepted from agents of papers; from others {WHEN_ACCEPTED}"
    return WHEN_ACCEPTED


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


def agents_of(report: EvalReport) -> list[Standing]:
    """List the standings of all contenders except the controls."""
    return [each for each in report.standings if not each.is_control]


def breakdowns(report: EvalReport) -> tuple[str, ...]:
    """List the breakdowns of a report with more than one category, in its order."""
    names = {name: None for each in report.standings for name in each.groups}
    return tuple(name for name in names if len(categories(report, name)) > 1)


def categories(report: EvalReport, breakdown: str) -> dict[str, int]:
    """Count the questions in each category of a breakdown."""
    counts: dict[str, int] = {}
    for each in report.standings:
        for name, accuracy in each.groups.get(breakdown, {}).items():
            counts[name] = max(counts.get(name, 0), accuracy.questions)
    return counts
