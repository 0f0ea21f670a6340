"""Reports of a run: each system over all searches, with errors clustered by video."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from jobs.evaluation.moments.cases import Case
from jobs.evaluation.moments.gains import moment_gains, video_gains, video_worths
from jobs.evaluation.moments.intervals import auroc, best_iou
from jobs.evaluation.moments.rankings import average_precision, ndcg_at, recall_at
from jobs.evaluation.moments.results import Result
from jobs.evaluation.score.statistics import Estimate, estimate

RANKS = (1, 5, 10)
NDCG_RANK = 10
IOUS = (0.3, 0.5, 0.7)


@dataclass(frozen=True, slots=True)
class Standing:
    """The figures of one system by name, each a mean over `searches`; `plain` figures have no error.

    `failures` are the ids of the searches in which it did worst, the first of the file first.
    """

    system: str
    searches: int
    figures: Mapping[str, Estimate]
    plain: Mapping[str, float | None]
    failures: tuple[str, ...]
    errors: int


def search_standings(cases: Sequence[Case], results: Sequence[Result]) -> list[Standing]:
    """Score ranked results at the level of moments, and of videos for searches of the whole library.

    Searches of what is nowhere have no right result, and are left out.
    """
    return [_search_standing(name, *pair) for name, pair in _by_system(cases, results, absent=False).items()]


def _search_standing(name: str, cases: Sequence[Case], results: Sequence[Result]) -> Standing:
    moments = [
        moment_gains(result.found, case.relevant, case.grades) for case, result in zip(cases, results, strict=True)
    ]
    ideals = [list(case.grades) for case in cases]
    figures = _ranked("moment", moments, ideals, cases)
    whole = [at for at, case in enumerate(cases) if case.video_id is None]
    if whole:
        of_videos = [video_gains(results[at].found, cases[at].relevant, cases[at].grades) for at in whole]
        worths = [list(video_worths(cases[at].relevant, cases[at].grades).values()) for at in whole]
        figures |= _ranked("video", of_videos, worths, [cases[at] for at in whole])
    failures = tuple(case.case_id for case, gains in zip(cases, moments, strict=True) if not any(gains[: RANKS[-1]]))
    return Standing(name, len(cases), figures, {}, failures, sum(bool(each.error) for each in results))


def _ranked(
    level: str, gains: Sequence[Sequence[float]], ideals: Sequence[Sequence[float]], cases: Sequence[Case]
) -> dict[str, Estimate]:
    pairs = list(zip(gains, ideals, strict=True))
    figures = {f"{level} R@{k}": _mean([recall_at(each, k) for each in gains], cases) for k in RANKS}
    figures[f"{level} mAP"] = _mean([average_precision(*pair) for pair in pairs], cases)
    figures[f"{level} nDCG@{NDCG_RANK}"] = _mean([ndcg_at(*pair, NDCG_RANK) for pair in pairs], cases)
    return figures


def ground_standings(cases: Sequence[Case], results: Sequence[Result]) -> list[Standing]:
    """Score the first range of each event that is there, and the verdicts on all.

    A range counts whether or not the system said that the event is there: that is scored by `misses` and `false
    alarms`, their mean `balanced accuracy`, and, of systems that give evidence, by AUROC. A search that failed said
    neither: it counts as wrong.
    """
    there, nowhere = _by_system(cases, results, absent=False), _by_system(cases, results, absent=True)
    return [
        _ground_standing(name, there.get(name, ([], [])), nowhere.get(name, ([], [])))
        for name in dict.fromkeys(each.system for each in results)
    ]


def _ground_standing(
    name: str, there: tuple[Sequence[Case], Sequence[Result]], nowhere: tuple[Sequence[Case], Sequence[Result]]
) -> Standing:
    ious = [best_iou(next(iter(result.found), None), case.relevant) for case, result in zip(*there, strict=True)]
    figures = {f"R@1 IoU {least:g}": _mean([float(each >= least) for each in ious], there[0]) for least in IOUS}
    figures["mIoU"] = _mean(ious, there[0])
    plain: dict[str, float | None] = {}
    if all(each.present is not None for each in (*there[1], *nowhere[1])):
        figures["misses"] = _mean([float(not each.present or bool(each.error)) for each in there[1]], there[0])
        figures["false alarms"] = _mean([float(bool(each.present or each.error)) for each in nowhere[1]], nowhere[0])
        wrong = figures["misses"].mean, figures["false alarms"].mean
        plain["balanced accuracy"] = 1.0 - math.fsum(wrong) / 2 if there[0] and nowhere[0] else None
    plain["AUROC"] = auroc(_evidence(there[1]), _evidence(nowhere[1]))
    failures = tuple(case.case_id for case, value in zip(there[0], ious, strict=True) if value < IOUS[0])
    errors = sum(bool(each.error) for each in (*there[1], *nowhere[1]))
    return Standing(name, len(there[0]) + len(nowhere[0]), figures, plain, failures, errors)


def _by_system(
    cases: Sequence[Case], results: Sequence[Result], *, absent: bool
) -> dict[str, tuple[list[Case], list[Result]]]:
    """The cases of which something is, or is not, there, and the results of each system for them."""
    known = {case.case_id: case for case in cases if case.absent is absent}
    found: dict[str, tuple[list[Case], list[Result]]] = {}
    for result in results:
        if result.case_id in known:
            pair = found.setdefault(result.system, ([], []))
            pair[0].append(known[result.case_id])
            pair[1].append(result)
    return found


def _evidence(results: Sequence[Result]) -> list[float]:
    return [each.evidence for each in results if each.evidence is not None]


def _mean(values: Sequence[float], cases: Sequence[Case]) -> Estimate:
    return estimate(values, [case.cluster for case in cases], 0.0, 1.0)


def by_category(
    cases: Sequence[Case],
    results: Sequence[Result],
    standings: Callable[[Sequence[Case], Sequence[Result]], list[Standing]],
) -> dict[str, list[Standing]]:
    """The standings of each category of searches, in the order of the file; empty if there are fewer than two."""
    names = list(dict.fromkeys(case.category for case in cases))
    if len(names) < 2:
        return {}
    found = {}
    for name in names:
        part = [case for case in cases if case.category == name]
        ids = {case.case_id for case in part}
        found[name] = standings(part, [each for each in results if each.case_id in ids])
    return found
