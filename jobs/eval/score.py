"""Scores of a run: means with their errors, evidence, answers against targets, groups, and verdicts of a judge."""

from __future__ import annotations

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from kinodex.agent.attempts import ask_checked
from kinodex.agent.errors import ModelError, ModelUnreachable
from kinodex.agent.evidence import Evidence
from kinodex.agent.prompts.rendering import render
from kinodex.agent.protocol.exchange import Model
from kinodex.agent.requests.judge_answer import JudgeAnswer
from kinodex.jobs.batch import Batch, Limits
from kinodex.jobs.errors import UsageError, check_packages
from kinodex.jobs.eval.contenders import ItemResult, Judgement
from kinodex.jobs.eval.folder import JUDGED, RunPlan, open_for_append, read_items, read_judgements, read_plan, read_run
from kinodex.jobs.eval.items import Item, Scoring, by_number
from kinodex.jobs.models import ModelChoice, describe_models, role_models, run_now

# Means over questions with their errors: questions about one video are not independent of each other.
#
# A standard error is clustered by video (Miller 2024, arXiv 2411.00640, sections 2.2 and 4.2; the sandwich estimator of
# Liang and Zeger 1986) with the small-item factor G / (G - 1) for G videos, and an interval takes the quantile of
# Student's t with G - 1 degrees of freedom (Cameron and Miller 2015, sections VI.B and VI.C). Where every video has as
# many questions, this is exactly the t-test on the videos' means.
#
# With few videos, or where all agree, that error is itself not known. Then a share has the exact interval of Clopper
# and Pearson on an effective number of questions (Korn and Graubard 1998, Survey Methodology 24): as many independent
# ones as would have the same variance. And a difference has the exact test of McNemar (1947) beside it, which counts
# the questions that one of the two alone answered, as if each were independent.

CONFIDENCE = 0.95
LEVEL = (1.0 + CONFIDENCE) / 2.0
ROUNDING = 1e-12
"""A standard error below this is rounding: all videos agree."""
FEW_VIDEOS = 20
"""With fewer clusters, clustered errors are known to be unsteady (Cameron and Miller 2015, section VI)."""
LEAST_VIDEOS = 8
"""With fewer clusters a difference has neither a clustered p-value nor a clustered interval."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over questions with its standard error clustered by video, and a 95 % confidence interval.

    `error`, `low` and `high` are None where clusters are too few, or all agree. Over 0 questions the mean says nothing.
    """

    mean: float
    error: float | None
    low: float | None
    high: float | None
    questions: int
    clusters: int


@dataclass(frozen=True, slots=True)
class Spread:
    """Distribution of a cost over questions."""

    mean: float
    median: float
    p90: float
    total: float


def clustered_error(values: Sequence[float], clusters: Sequence[Hashable]) -> float | None:
    """Standard error of the mean of clustered values; None with fewer than two clusters."""
    names = set(clusters)
    if len(names) < 2:
        return None
    mean = math.fsum(values) / len(values)
    sums = dict.fromkeys(names, 0.0)
    for value, cluster in zip(values, clusters, strict=True):
        sums[cluster] += value - mean
    squares = math.fsum(total * total for total in sums.values())
    error = math.sqrt(squares * len(names) / (len(names) - 1)) / len(values)
    return 0.0 if error < ROUNDING else error


def estimate(values: Sequence[float], clusters: Sequence[Hashable], lowest: float, highest: float) -> Estimate:
    """Estimate the mean, its error and its interval, cut to possible means; one from 0 to 1 is taken as a share."""
    if not values:
        return Estimate(0.0, None, None, None, 0, 0)
    mean, count = math.fsum(values) / len(values), len(set(clusters))
    error = clustered_error(values, clusters)
    is_share = (lowest, highest) == (0.0, 1.0)
    if error is not None and is_share and (error == 0 or count < FEW_VIDEOS):
        low, high = share_interval(mean, error, len(values), count)
    elif error:
        from scipy.special import stdtrit

        reach = float(stdtrit(count - 1, LEVEL)) * error
        low, high = max(lowest, mean - reach), min(highest, mean + reach)
    else:
        return Estimate(mean, None, None, None, len(values), count)
    return Estimate(mean, error or None, low, high, len(values), count)


def difference(values: Sequence[float], clusters: Sequence[Hashable]) -> Estimate:
    """Estimate a mean difference; with fewer than `LEAST_VIDEOS` clusters without error and interval, as `p_value`."""
    found = estimate(values, clusters, -1.0, 1.0)
    return found if found.clusters >= LEAST_VIDEOS else replace(found, error=None, low=None, high=None)


def share_interval(share: float, error: float, questions: int, clusters: int) -> tuple[float, float]:
    """Exact 95 % interval of a share over `questions` with a clustered standard error, of two clusters or more.

    Where all videos agree on all or nothing, nothing says how far their questions go together, and each video counts
    as one question. Scores between 0 and 1 vary less than shares of the same mean: for them the interval is too wide.
    """
    from scipy.special import betaincinv, stdtrit

    if share <= 0.0 or share >= 1.0:
        effective = float(clusters)
    else:
        effective = questions if error == 0 else min(float(questions), share * (1.0 - share) / error**2)
        # The error is known from few videos: its effective number shrinks as Student's t grows.
        effective *= float(stdtrit(questions - 1, LEVEL) / stdtrit(clusters - 1, LEVEL)) ** 2
    right = share * effective
    low = 0.0 if share <= 0.0 else float(betaincinv(right, effective - right + 1.0, 1.0 - LEVEL))
    high = 1.0 if share >= 1.0 else float(betaincinv(right + 1.0, effective - right, LEVEL))
    return low, high


def p_value(difference: Estimate) -> float | None:
    """Probability of a mean this far from 0 if there is no difference (two-sided t-test); None where it is unknown."""
    if not difference.error or difference.clusters < LEAST_VIDEOS:
        return None
    from scipy.special import stdtr

    return float(2.0 * stdtr(difference.clusters - 1, -abs(difference.mean) / difference.error))


def exact_p_value(only_a: int, only_b: int) -> float | None:
    """Probability of counts at least this uneven if either is as likely (McNemar's exact test, two-sided)."""
    if not only_a + only_b:
        return None
    from scipy.special import bdtr

    return min(1.0, 2.0 * float(bdtr(min(only_a, only_b), only_a + only_b, 0.5)))


def spread(values: Sequence[float]) -> Spread:
    """Describe the distribution of one or more values."""
    mean, median, p90 = float(np.mean(values)), float(np.median(values)), float(np.percentile(values, 90))
    return Spread(mean, median, p90, math.fsum(values))


# Evidence against the true ranges: whether it touches one, and how precisely it covers them.

Ranges = Sequence[tuple[float, float]]
"""Half-open ranges in seconds, as a player shows them."""
Place = tuple[str, float, float]
"""A range of a video: its id, start and end in seconds."""


@dataclass(frozen=True, slots=True)
class EvidenceScore:
    """The score of the evidence of one answer: `hit` if some of it lies in a true range.

    `overlap` is the temporal intersection over union of all of it with all true ranges (tIoU, 0 to 1; Gao et al. 2017,
    arXiv 1705.02101): all of a video hits, with a small overlap.
    """

    hit: bool
    overlap: float


def score_evidence(evidence: Iterable[Evidence], among: Collection[str], true: Ranges) -> EvidenceScore:
    """Score ranges against the true ones, which lie in one of the videos `among`; ranges of others are beside them."""
    found = _joined((each.video_id, each.start_s, each.end_s) for each in evidence)
    wanted = _joined(("", start_s, end_s) for start_s, end_s in true)
    inside = {name: _common_s([each for each in found if each[0] == name], wanted) for name in among}
    common_s = max(inside.values(), default=0.0)
    all_s = _length_s(found) + _length_s(wanted) - common_s
    return EvidenceScore(common_s > 0, common_s / all_s if all_s else 0.0)


def _joined(places: Iterable[Place]) -> list[Place]:
    """Join ranges that overlap, so that no second counts twice."""
    joined: list[Place] = []
    for video, start_s, end_s in sorted(places):
        if joined and joined[-1][0] == video and start_s <= joined[-1][2]:
            joined[-1] = (video, joined[-1][1], max(end_s, joined[-1][2]))
        else:
            joined.append((video, start_s, end_s))
    return joined


def _common_s(found: Sequence[Place], wanted: Sequence[Place]) -> float:
    return sum(
        max(0.0, min(end_s, other_end_s) - max(start_s, other_start_s))
        for _, start_s, end_s in found
        for _, other_start_s, other_end_s in wanted
    )


def _length_s(places: Iterable[Place]) -> float:
    return sum(end_s - start_s for _, start_s, end_s in places)


# Score an answer against its target, which it meets here and where it is judged, and nowhere else.

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
        visited=any(each.video_id in among for each in record.visited) if has_clip else None,
        chosen_s=_distances([each.chosen for each in chosen], among, ranges),
        best_s=_distances([each.best for each in chosen], among, ranges),
    )


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
    if verdict is not None and verdict.asked not in ("", asked_digest(item, record)):
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
    """True if the result holds an answer of the kind that is scored."""
    return record.option is not None if scoring == "options" else bool(record.text)


def _distances(segments: Sequence[Evidence | None], among: set[str], ranges: Ranges) -> tuple[float, ...]:
    """Seconds from each segment of the item's videos to the nearest range, 0 where they overlap (VCA, Figure 5)."""
    return tuple(
        min(max(0.0, start_s - each.end_s, each.start_s - end_s) for start_s, end_s in ranges)
        for each in segments
        if each is not None and each.video_id in among
    )


# Figures of the gate (`--verify`): right answers that their evidence does not show, and evidence that suffices.
#
# A right answer to which a second look at its evidence alone did not come was not read off what it cites: it was known,
# guessed, or seen elsewhere in the video.

RIGHT = 0.5
"""An answer with a higher score is right; judged ones from 2 of 3."""


def right_without_evidence(result: ScoredResult) -> bool | None:
    """True for a right answer that is not supported; None where the gate was off or came to nothing."""
    alone = evidence_suffices(result)
    return None if alone is None else (result.score or 0.0) > RIGHT and not alone


def evidence_suffices(result: ScoredResult) -> bool | None:
    """True for a right answer to which its evidence alone leads; None where the gate was off or came to nothing."""
    if result.record.supported is None or result.score is None:
        return None
    return result.score > RIGHT and result.record.supported


# Scores of groups of four questions, as Video-MME-v2 counts them (Fu et al. 2026, arXiv 2604.05015, and its code).
#
# A group about one ability (`group_type` "relevance") is worth the square of its share of right answers. In a group
# that is a chain of reasoning ("logic") only the right answers before the first wrong one count, in steps that depend
# on which questions stand side by side (`group_structure`).

TITLE = "score_of_groups"
SIZE = 4
SQUARES = (0.0, 1 / 16, 4 / 16, 9 / 16, 1.0)
CHAINS: Mapping[str, tuple[tuple[float, ...], int | None]] = {
    "[1,2,3,4]": (SQUARES, None),
    "[1,[2,3],4]": ((0.0, 1 / 12, 4 / 12, 7 / 12, 1.0), 1),
    "[[1,2],3,4]": ((0.0, 1 / 10, 2 / 10, 5 / 10, 1.0), 0),
}
"""By structure: the worth of a chain by its length, and the first of the two questions that stand side by side."""


def group_scores(results: Iterable[ScoredResult]) -> dict[str, dict[str, Estimate]]:
    """Compute the mean score of groups that were asked whole, of all and by type and level; empty without groups."""
    films: dict[str, list[ScoredResult]] = defaultdict(list)
    for each in results:
        if each.score is not None and "group_type" in each.item.groups:
            films[each.item.video].append(each)
    found: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for video, group in films.items():
        if len(group) != SIZE:
            continue
        ordered = sorted(group, key=lambda each: by_number(each.item.item_id))
        last = ordered[-1].item.groups
        structure = last.get("group_structure", ("",))[0].replace(" ", "")
        score = score_group([each.score == 1 for each in ordered], last["group_type"][0], structure)
        levels = [f"level {name}" for name in last.get("level", ())]
        for category in ("all", last["group_type"][0], *levels):
            found[category].append((score, video))
    means = {
        name: estimate([score for score, _ in pairs], [video for _, video in pairs], 0.0, 1.0)
        for name, pairs in sorted(found.items())
    }
    return {TITLE: means} if means else {}


def score_group(right: Sequence[bool], kind: str, structure: str) -> float:
    """Score a group of four, 0 to 1: of right answers in order, its type, and its structure without spaces."""
    if kind != "logic":
        return SQUARES[sum(right)]
    worth, pair = CHAINS.get(structure, CHAINS["[1,2,3,4]"])
    length = next((place for place, each in enumerate(right) if not each), SIZE)
    # Of two questions side by side, the second counts though the first is wrong.
    beside = pair is not None and length == pair and right[pair + 1]
    return worth[length + 1 if beside else length]


# Judge free-form answers by a model, from 0 to 3: how much of the true answer each holds. Its name is kept with it.
#
# A judgement is written as soon as it is there, so that whatever ends the judging, the same command continues it;
# answers without a valid score are judged again then.

JUDGE = "judge"
AT_ONCE = 32
"""Answers judged together, by default."""
MOST_REFUSED = 20
"""Requests that the endpoint may refuse before the judging ends."""

Case = tuple[Judgement, JudgeAnswer]
"""A judgement that has no score yet, and the request to the judge."""


def judge_answers(run: Path, choice: ModelChoice, on_progress: Callable[[int, int], object]) -> int:
    """Judge the answers of a run that have no score by this judge yet; return the number without one now.

    `on_progress` gets the numbers of done and all. Raises `UsageError` for a run that needs no judge or a model that
    cannot be one, and `ModelError` if the endpoint is gone or refuses too much; what was judged is kept.
    """
    check_packages("scipy")
    if read_plan(run).scoring != "judge":
        raise UsageError(f"got {run}, whose answers are options and need no judge; `kinodex eval report` scores them")
    if choice.is_replay or not choice.has_language:
        raise UsageError(
            f"got {choice.model} as the judge, which has no language; give --model and --base-url, or --models"
        )
    with open_for_append(run / JUDGED) as append:
        named = describe_models(choice)  # with the endpoint and settings
        judge = named.get(JUDGE) or named.get("default")
        if judge is None:
            raise UsageError(
                f"got {choice.roles_file} with no table [judge] and no [default]; name the model that judges"
            )
        return run_now(_judge_all(open_cases(run, judge), choice, append, on_progress))


def open_cases(run: Path, judge: str) -> list[Case]:
    """List the answers in words to questions with a known answer to which this judge gave no score, asked the same."""
    scored = {
        (each.contender, each.item_id): each
        for each in read_judgements(run)
        if (each.judge, each.score is None) == (judge, False)
    }
    instructions = render(JudgeAnswer(question="", reference="", answer=""))
    prompt = hashlib.sha256(instructions.encode()).hexdigest()[:16]
    items = {item.item_id: item for item in read_items(run)}
    cases = []
    for record in read_run(run).records:
        item = items[record.item_id]
        if not (record.text and item.truth.text):
            continue
        kept = scored.get((record.contender, record.item_id))
        asked = asked_digest(item, record)
        if kept is None or kept.asked not in ("", asked) or kept.prompt not in ("", prompt):
            request = JudgeAnswer(question=item.question.text, reference=item.truth.text, answer=record.text)
            judgement = Judgement(record.contender, record.item_id, judge, None, asked=asked, prompt=prompt)
            cases.append((judgement, request))
    return cases


async def _judge_all(
    cases: Sequence[Case],
    choice: ModelChoice,
    append: Callable[[Judgement], None],
    on_progress: Callable[[int, int], object],
) -> int:
    """Judge cases side by side; return the number of those without a score."""
    batch: Batch[Case] = Batch(Limits(choice.at_once or AT_ONCE), "answers", "all scores are kept")
    done = unscored = refused = 0

    def keep(case: Case, judged: Judgement | ModelError) -> None:
        nonlocal done, unscored, refused
        if isinstance(judged, ModelUnreachable):  # which says nothing of the answer
            batch.unheard(case[0], judged)
            unscored += 1
        elif isinstance(judged, ModelError):  # of what this one answer says, unless it goes on like that
            batch.heard()
            refused += 1
            if refused >= MOST_REFUSED:
                batch.stop(judged)
            else:
                append(replace(case[0], reason=" ".join(str(judged).split())))
            unscored += 1
        else:
            batch.heard()
            append(judged)
            unscored += judged.score is None
        done += 1
        on_progress(done, len(cases))

    async with role_models(choice) as models:
        model = models.get(JUDGE) or models["default"]
        await batch.run_here(cases, lambda case: judge(model, case), keep)
    return unscored


async def judge(model: Model, case: Case) -> Judgement | ModelError:
    """Judge one answer, or give the error of a request without a reply. Raises what every other would meet too."""
    unscored, request = case
    try:
        outcome = await ask_checked(model, request)
    except ModelUnreachable as error:
        return error
    if outcome.refused is not None:
        return outcome.refused
    if outcome.reply is None:
        return replace(unscored, reason=f"no valid score in {outcome.calls} attempts: {outcome.complaint}")
    return replace(unscored, score=outcome.reply.score, reason=outcome.reply.reasoning)
