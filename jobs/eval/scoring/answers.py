"""Scores of answers against their targets, which they meet here and where they are judged, and nowhere else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kinodex.agent.evidence import Evidence
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.folder import RunPlan
from kinodex.jobs.eval.items import Item, Scoring
from kinodex.jobs.eval.results import ItemResult, Judgement
from kinodex.jobs.eval.scoring.evidence import EvidenceScore, Ranges, score_evidence

BEST_JUDGED = 3
"""The highest score of a judge model."""

NOTHING_CITED = EvidenceScore(False, 0.0)
Verdicts = Mapping[tuple[str, str], Judgement]
"""The judgements of one judge, by contender and item."""


@dataclass(frozen=True, slots=True)
class ScoredResult:
    """An answer and its score.

    `score` is 0 to 1, None where it is unknown: the answer is not public, or no model has judged yet. `valid`: there
    was something to score. `cited` scores the evidence that the answer cites, `shown` all that a model was shown or
    read in its run; `hit`: the evidence, cited or not, touches a true range; `visited`: the true clip was looked at.
    They are None where the benchmark does not tell, the library lacks the clip, or the answer was imported. `chosen_s`
    and `best_s` are the distances to the nearest true range of the segments that the search went on in, round by round,
    and of those that had the highest score then.
    """

    item: Item
    record: ItemResult
    score: float | None
    valid: bool
    hit: bool | None
    cited: EvidenceScore | None
    shown: EvidenceScore | None
    visited: bool | None
    chosen_s: tuple[float, ...]
    best_s: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Questions:
    """Items with all that their scoring needs; `videos` are the library's by item id."""

    scoring: Scoring
    items: tuple[Item, ...]
    videos: Mapping[str, Sequence[str]]
    verdicts: Verdicts

    def score_all(self, records: Mapping[str, ItemResult]) -> list[ScoredResult]:
        """Score one contender's results, in the order of the items; items without a result are left out."""
        results = []
        for item in self.items:
            record = records.get(item.item_id)
            if record is not None:
                judged = self.scoring == "judge"
                value, valid = judged_score(item, record, self.verdicts) if judged else option_score(item, record)
                results.append(score(item, record, self.videos[item.item_id], value, valid))
        return results


def by_contender(
    plan: RunPlan, items: Sequence[Item], records: Iterable[ItemResult]
) -> dict[str, dict[str, ItemResult]]:
    """Group results by contender, in the order of the plan, and item id; raise `UsageError` for one of another run."""
    found: dict[str, dict[str, ItemResult]] = {each.name: {} for each in plan.contenders}
    known = {item.item_id for item in items}
    for record in records:
        if record.contender not in found or record.item_id not in known:
            raise UsageError(
                f"got an answer of {record.contender!r} to {record.item_id!r}, and the run has no such contender or "
                "question; its answers.jsonl is of another run: give the folder as `kinodex eval` wrote it"
            )
        found[record.contender][record.item_id] = record
    return found


def score(item: Item, record: ItemResult, videos: Sequence[str], score: float | None, valid: bool) -> ScoredResult:
    """Complete a scored result; `videos` are the library's that the item is about, a clip one of them by its id."""
    clip, ranges = item.truth.clip, item.truth.evidence
    among = set(videos) if clip is None else {clip} & set(videos)
    known = bool(ranges and among) and not record.imported
    given = score_evidence(record.evidence, among, ranges) if known else None
    chosen = [each for each in record.search if each.chosen is not None] if known else []
    has_clip = clip is not None and bool(among) and not record.imported
    return ScoredResult(
        item=item,
        record=record,
        score=score,
        valid=valid,
        hit=None if given is None else given.hit,
        cited=NOTHING_CITED if given is not None and not record.evidence_cited else given,
        shown=score_evidence((*record.visited, *record.evidence), among, ranges) if known else None,
        visited=any(_lies_in(each, among, item.truth.clip_s) for each in record.visited) if has_clip else None,
        chosen_s=_distances([each.chosen for each in chosen], among, ranges),
        best_s=_distances([each.best for each in chosen], among, ranges),
    )


def _lies_in(place: Evidence, among: Collection[str], clip_s: tuple[float, float] | None) -> bool:
    """Return True if a place touches the true clip: one of the videos `among`, or a part of it."""
    inside = clip_s is None or (place.start_s < clip_s[1] and clip_s[0] < place.end_s)
    return place.video_id in among and inside


def option_score(item: Item, record: ItemResult) -> tuple[float | None, bool]:
    """Score 1 for the right option, 0 for another one or none; the second value is True if there is an option."""
    if item.truth.option is None:
        return None, False
    return float(record.option == item.truth.option), record.option is not None


def judged_score(item: Item, record: ItemResult, verdicts: Verdicts) -> tuple[float | None, bool]:
    """Take the judge's score, 0 if it gave none or there is no text to judge; the second value is True if it gave one.

    So MMBench-Video's official scoring has it (VLMEvalKit): `_all` counts the invalid as 0, `_valid` leaves them out.
    """
    verdict = verdicts.get((record.contender, record.item_id))
    if verdict is not None and verdict.asked != asked_digest(item, record):
        verdict = None  # of another answer, question or true answer
    if verdict is not None and verdict.score is not None:
        return verdict.score / BEST_JUDGED, True
    waits = verdict is None and bool(record.text)
    return (None if waits or not verdicts or item.truth.text is None else 0.0), False


def asked_digest(item: Item, record: ItemResult) -> str:
    """Digest of what a judge is asked about an answer: the question, the true answer and the answer itself."""
    asked = json.dumps([item.question.text, item.truth.text, record.text])
    return hashlib.sha256(asked.encode()).hexdigest()[:16]


def has_answer(record: ItemResult, scoring: Scoring) -> bool:
    """Return True if the result holds an answer of the kind that is scored."""
    return record.option is not None if scoring == "options" else bool(record.text)


def _distances(segments: Sequence[Evidence | None], among: set[str], ranges: Ranges) -> tuple[float, ...]:
    """Seconds from each segment of the item's videos to the nearest range, 0 where they overlap (VCA, Figure 5)."""
    return tuple(
        min(max(0.0, start_s - each.end_s, each.start_s - end_s) for start_s, end_s in ranges)
        for each in segments
        if each is not None and each.video_id in among
    )
