"""Standings: each contender over all searches, with errors clustered by video."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kinodex.jobs.eval.moments.cases import Case
from kinodex.jobs.eval.moments.ranges import auroc, best_iou
from kinodex.jobs.eval.moments.ranked_lists import (
    average_precision,
    moment_gains,
    ndcg_at,
    recall_at,
    video_gains,
    video_worths,
)
from kinodex.jobs.eval.moments.results import Result
from kinodex.jobs.eval.scoring.estimates import Estimate, estimate

RANKS = (1, 5, 10)
NDCG_RANK = 10
IOUS = (0.3, 0.5, 0.7)


@dataclass(frozen=True, slots=True)
class Standing:
    """Means over the `searches` of one contender; `plain` figures have no error, `failures` are the worst searches."""

    system: str
    searches: int
    figures: Mapping[str, Estimate]
    plain: Mapping[str, float | None]
    failures: tuple[str, ...]
    errors: int


Pairs = list[tuple[Case, Result]]


def search_standings(cases: Sequence[Case], results: Sequence[Result]) -> list[Standing]:
    """Score ranked results at the level of moments, and of videos for searches of the whole library.

    Searches of what is nowhere have no right result, and are left out.
    """
    return [_search_standing(name, pairs) for name, pairs in _by_system(cases, results, absent=False).items()]


def _search_standing(name: str, pairs: Pairs) -> Standing:
    gains = [moment_gains(result.found, case.relevant, case.grades) for case, result in pairs]
    figures = _ranked("moment", gains, [case.grades for case, _ in pairs], pairs)
    if whole := [pair for pair in pairs if pair[0].video_id is None]:
        of_videos = [video_gains(result.found, case.relevant, case.grades) for case, result in whole]
        worths = [list(video_worths(case.relevant, case.grades).values()) for case, _ in whole]
        figures |= _ranked("video", of_videos, worths, whole)
    failures = tuple(pair[0].case_id for pair, each in zip(pairs, gains, strict=True) if not any(each[: RANKS[-1]]))
    return Standing(name, len(pairs), figures, {}, failures, _errors(pairs))


def _ranked(
    level: str, gains: Sequence[Sequence[float]], ideals: Sequence[Sequence[float]], pairs: Pairs
) -> dict[str, Estimate]:
    lists = list(zip(gains, ideals, strict=True))
    figures = {f"{level} R@{k}": _mean([recall_at(each, k) for each in gains], pairs) for k in RANKS}
    figures[f"{level} mAP"] = _mean([average_precision(*each) for each in lists], pairs)
    figures[f"{level} nDCG@{NDCG_RANK}"] = _mean([ndcg_at(*each, NDCG_RANK) for each in lists], pairs)
    return figures


def ground_standings(cases: Sequence[Case], results: Sequence[Result]) -> list[Standing]:
    """Score the first range of each event that is there, and the verdicts on all.

    A range counts whether or not the contender said that the event is there: that is scored by `misses` and `false
    alarms`, their mean `balanced accuracy`, and, of contenders that give evidence, by AUROC. A search that failed said
    neither: it counts as wrong.
    """
    there, nowhere = _by_system(cases, results, absent=False), _by_system(cases, results, absent=True)
    names = dict.fromkeys(each.system for each in results)
    return [
        _ground_standing(name, there.get(name, []), nowhere.get(name, [])) for name in names if name in there | nowhere
    ]


def _ground_standing(name: str, there: Pairs, nowhere: Pairs) -> Standing:
    ious = [best_iou(next(iter(result.found), None), case.relevant) for case, result in there]
    figures = {f"R@1 IoU {least:g}": _mean([float(each >= least) for each in ious], there) for least in IOUS}
    figures["mIoU"] = _mean(ious, there)
    plain: dict[str, float | None] = {}
    if all(result.present is not None for _, result in (*there, *nowhere)):
        figures["misses"] = _mean([float(not each.present or bool(each.error)) for _, each in there], there)
        figures["false alarms"] = _mean([float(bool(each.present or each.error)) for _, each in nowhere], nowhere)
        wrong = figures["misses"].mean, figures["false alarms"].mean
        plain["balanced accuracy"] = 1.0 - math.fsum(wrong) / 2 if there and nowhere else None
    evidence = [[each.evidence for _, each in part if each.evidence is not None] for part in (there, nowhere)]
    plain["AUROC"] = auroc(*evidence)
    failures = tuple(case.case_id for (case, _), value in zip(there, ious, strict=True) if value < IOUS[0])
    return Standing(name, len(there) + len(nowhere), figures, plain, failures, _errors((*there, *nowhere)))


def _by_system(cases: Sequence[Case], results: Sequence[Result], *, absent: bool) -> dict[str, Pairs]:
    """Return the cases of which something is, or is not, there, with the results of each contender for them."""
    known = {case.case_id: case for case in cases if case.absent is absent}
    found: dict[str, Pairs] = {}
    for result in results:
        if result.case_id in known:
            found.setdefault(result.system, []).append((known[result.case_id], result))
    return found


def _mean(values: Sequence[float], pairs: Pairs) -> Estimate:
    return estimate(values, [case.cluster for case, _ in pairs], 0.0, 1.0)


def _errors(pairs: Iterable[tuple[Case, Result]]) -> int:
    return sum(bool(result.error) for _, result in pairs)


def by_category(
    cases: Sequence[Case],
    results: Sequence[Result],
    standings: Callable[[Sequence[Case], Sequence[Result]], list[Standing]],
) -> dict[str, list[Standing]]:
    """Return the standings of each category of searches, in the order of the file.

    There are none for fewer than two categories.
    """
    parts: dict[str, list[Case]] = {}
    for case in cases:
        parts.setdefault(case.category, []).append(case)
    return {name: standings(part, results) for name, part in parts.items()} if len(parts) > 1 else {}
