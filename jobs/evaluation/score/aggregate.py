"""The figures of a run: every contender over all questions, by category and length, and every two of them compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from jobs.benchmarks.item import Item, Scoring
from jobs.errors import UsageError
from jobs.evaluation.run.contenders import Contender
from jobs.evaluation.run.plan import Plan
from jobs.evaluation.run.records import Judgement, Record
from jobs.evaluation.score.report_types import Depth, Estimate, Pair, Report, Standing
from jobs.evaluation.score.scorers import Scored, Verdicts, answered, judged_score, option_score, scored
from jobs.evaluation.score.statistics import estimate, p_value, spread

COSTS: Mapping[str, Callable[[Record], float]] = {
    "frames": lambda record: record.ledger.frames,
    "frames_with_kept": lambda record: record.ledger.frames_with_kept,
    "frame_shows": lambda record: record.ledger.frame_shows,
    "rounds": lambda record: record.rounds,
    "calls": lambda record: record.ledger.calls,
    "input_tokens": lambda record: record.ledger.input_tokens,
    "output_tokens": lambda record: record.ledger.output_tokens,
    "tokens": lambda record: record.ledger.input_tokens + record.ledger.output_tokens,
    "cost": lambda record: record.ledger.cost,
    "seconds": lambda record: record.ledger.seconds,
    "model_seconds": lambda record: record.ledger.model_seconds,
}
"""What one question cost, by the names of `Standing.costs`; money in whatever currency the user's prices have."""

DURATION = "duration"
MINUTE_S = 60.0
LENGTHS = ((5, "< 5 min"), (30, "5 to 30 min"), (60, "30 to 60 min"), (100, "60 to 100 min"))
LONGER = "> 100 min"
IN_ORDER = (*(name for _, name in LENGTHS), LONGER, "short", "medium", "long")
"""Categories that come in this order; the others by number or name."""


def make_report(
    plan: Plan,
    items: Sequence[Item],
    records: Iterable[Record],
    judgements: Sequence[Judgement] = (),
    *,
    simulated: bool = False,
) -> Report:
    """The report of a run, however far it got: its items with their truth, the records, and what a judge said of them.

    `items` are those that the plan asks. Their `duration_s` is the benchmark's or else the library's, and their
    truth's `clip` is the library's video id. Of several judges the last to begin counts; the order of the records
    does not matter.

    Raises:
        UsageError: a record is of a contender or an item that the run does not have.
    """
    found = by_contender(plan, items, records)
    judge = judgements[-1].judge if judgements else None
    verdicts = {(each.contender, each.item_id): each for each in judgements if each.judge == judge}
    about = Questions(plan.scoring, tuple(items), plan.items, verdicts)
    entered = [each for each in plan.contenders if found[each.name]]
    results = {each.name: about.scored(found[each.name]) for each in entered}
    unsettled = plan.scoring == "judge" and any(
        each.score is None and each.item.truth.known for result in results.values() for each in result
    )
    return Report(
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
        simulated=simulated,
        scoring=plan.scoring,
        facts=_facts(plan),
    )


@dataclass(frozen=True, slots=True)
class Questions:
    """Questions with all that scoring an answer to them needs; `videos` are the library's by item id."""

    scoring: Scoring
    items: tuple[Item, ...]
    videos: Mapping[str, Sequence[str]]
    verdicts: Verdicts

    def scored(self, records: Mapping[str, Record]) -> list[Scored]:
        """One contender's records by item id, in the order of the items; items without a record are left out."""
        results = []
        for item in self.items:
            record = records.get(item.item_id)
            if record is not None:
                judged = self.scoring == "judge"
                score, valid = judged_score(item, record, self.verdicts) if judged else option_score(item, record)
                results.append(scored(item, record, self.videos[item.item_id], score, valid))
        return results


def by_contender(plan: Plan, items: Sequence[Item], records: Iterable[Record]) -> dict[str, dict[str, Record]]:
    """The records by contender, in the order of the plan, and item id; raises `UsageError` for one of another run."""
    found: dict[str, dict[str, Record]] = {each.name: {} for each in plan.contenders}
    known = {item.item_id for item in items}
    for record in records:
        if record.contender not in found or record.item_id not in known:
            raise UsageError(
                f"got an answer of {record.contender!r} to {record.item_id!r}, and the run has no such contender or "
                "question; its answers.jsonl is of another run: give the folder as `kinodex eval` wrote it"
            )
        found[record.contender][record.item_id] = record
    return found


def standing(contender: Contender, scoring: Scoring, results: Sequence[Scored]) -> Standing:
    """One contender's figures over its scored answers, of which there must be one at least."""
    records = [each.record for each in results]
    known = [each for each in results if each.score is not None]
    judged = scoring == "judge"
    return Standing(
        name=contender.name,
        agent=contender.agent,
        settings=contender.settings,
        is_control=contender.is_control,
        accuracy=_mean(known, _score),
        valid=_mean([each for each in known if each.valid], _score) if judged else None,
        unanswered=sum(not answered(each, scoring) for each in records),
        invalid=sum(each.status == "invalid" for each in records),
        errors=sum(bool(each.error) for each in records),
        evidence=_share(results, lambda each: each.hit),
        grounding=_share(results, lambda each: each.visited),
        costs={name: spread([cost(each) for each in records]) for name, cost in COSTS.items()},
        groups=by_group(known),
        depths=_depths(known),
        frames=tuple(each.ledger.frames for each in records),
        entropy={
            "intrinsic": tuple(e.intrinsic for each in records for e in each.search if e.intrinsic is not None),
            "fused": tuple(e.fused for each in records for e in each.search if e.fused is not None),
        },
        distance={
            "chosen": tuple(seconds for each in results for seconds in each.chosen_s),
            "best": tuple(seconds for each in results for seconds in each.best_s),
        },
        valid_groups=by_group([each for each in known if each.valid]) if judged else {},
    )


def pair(a: str, b: str, results_a: Iterable[Scored], results_b: Iterable[Scored]) -> Pair:
    """Two contenders on the questions that both have a score of; who has more than half of it was right."""
    others = {each.item.item_id: _score(each) for each in results_b if each.score is not None}
    both = [each for each in results_a if each.score is not None and each.item.item_id in others]
    scores = [(_score(each), others[each.item.item_id]) for each in both]
    difference = estimate([one - other for one, other in scores], [each.item.video for each in both], -1.0, 1.0)
    right = [(one > 0.5, other > 0.5) for one, other in scores]
    counts = [right.count(each) for each in ((True, True), (True, False), (False, True), (False, False))]
    return Pair(a, b, difference, p_value(difference), *counts)


def by_group(results: Iterable[Scored]) -> dict[str, dict[str, Estimate]]:
    """Accuracy by breakdown and category. A question counts once in each of its categories (LVBench's rule).

    A benchmark's own breakdown by "duration" (Video-MME) takes the place of the one by minutes (EEA, Figure 8).
    """
    members: dict[str, dict[str, list[Scored]]] = defaultdict(lambda: defaultdict(list))
    for each in results:
        for breakdown, categories in {DURATION: _length(each.item), **each.item.groups}.items():
            for category in set(categories):
                members[breakdown][category].append(each)
    return {
        breakdown: {name: _mean(categories[name], _score) for name in sorted(categories, key=_place)}
        for breakdown, categories in sorted(members.items(), key=lambda each: each[0] == DURATION)
    }


def chance(scoring: Scoring, items: Sequence[Item]) -> float | None:
    """The accuracy that guessing has on average; None where answers are judged."""
    return fmean(1.0 / len(item.question.options) for item in items) if scoring == "options" and items else None


def _facts(plan: Plan) -> dict[str, str]:
    limits = {name: getattr(plan.budget, name) for name in ("rounds", "frames", "tokens", "seconds", "cost")}
    set_limits = ", ".join(f"{value:g} {name}" for name, value in limits.items() if value is not None)
    return {
        "annotations": plan.annotations,
        "sha256 of the questions": plan.annotations_sha256,
        "space": plan.space,
        "subtitles": "yes" if plan.subtitles else "no",
        "captions that agents make": "kept for later questions" if plan.keep_captions else "paid for by every question",
        "budget a question": set_limits or "none",
        "part of the benchmark": plan.part,
        "questions chosen": "all" if plan.limit is None else f"{plan.limit} with seed {plan.seed}",
        "kinodex": plan.version,
    }


def _score(each: Scored) -> float:
    return each.score or 0.0


def _mean(results: Sequence[Scored], value: Callable[[Scored], float]) -> Estimate:
    return estimate([value(each) for each in results], [each.item.video for each in results], 0.0, 1.0)


def _share(results: Iterable[Scored], what: Callable[[Scored], bool | None]) -> Estimate | None:
    """How often something is so, over the answers of which that is known; None if there are none."""
    told = [each for each in results if what(each) is not None]
    return _mean(told, lambda each: float(bool(what(each)))) if told else None


def _depths(results: Sequence[Scored]) -> tuple[Depth, ...]:
    ended: dict[int, list[float]] = defaultdict(list)
    for each in results:
        ended[each.record.rounds].append(_score(each))
    return tuple(
        Depth(rounds, len(scores), len(scores) / len(results), fmean(scores))
        for rounds, scores in sorted(ended.items())
    )


def _length(item: Item) -> tuple[str, ...]:
    if item.duration_s is None:
        return ()
    return (next((name for minutes, name in LENGTHS if item.duration_s < minutes * MINUTE_S), LONGER),)


def _place(category: str) -> tuple[float, float, str]:
    known = IN_ORDER.index(category) if category in IN_ORDER else len(IN_ORDER)
    return known, float(category) if category.replace(".", "", 1).isdecimal() else 0.0, category
