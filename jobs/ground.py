"""Grounding: the ranges of time that fit a text best, and what may be said of them. `kinodex ground`.

By search alone, or with an agent, whose evidence the ranges then are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinodex.agent.answer import Answer
from kinodex.agent.protocol.question import Question
from kinodex.agent.videos.environment import Environment
from kinodex.agent.videos.library_videos import AnchorsFrom
from kinodex.agent.videos.line_matches import line_deviations
from kinodex.agent.videos.scale import FLAT, NO_MATCH, SAME_DISTANCE_SHARE, Floats, calibrate
from kinodex.index.library import LibraryReader
from kinodex.index.rows import Basis, VideoRow
from kinodex.index.search.fusion import shares_words
from kinodex.index.spaces.towers import Sigmoid
from kinodex.jobs.errors import UsageError
from kinodex.jobs.export.moments import SNAP_S, Moment, MomentRule, SegmentsOf, arranged, cut_times
from kinodex.jobs.models import ModelChoice, chosen_models
from kinodex.jobs.verdicts import basis_of, claim

if TYPE_CHECKING:
    from kinodex.jobs.verify import Looked

# Grounding by search alone: the ranges where a text's evidence stands out. It is an order, never a verdict.

MOST = 5
NEAREST_VIDEOS = 16
"""Videos in which ranges are looked for, the nearest by the library's indexes, if none are named."""
USUAL_VIDEOS = 48
"""Videos over which the usual is taken: these and others, evenly spaced over the library."""
BY_SEARCH = "search"
NOTHING_HELD = "the library holds neither pictures nor words of the videos searched"
NOTHING_FITS = "no picture and no line in them fits it better than is usual"


@dataclass(frozen=True, slots=True)
class Grounding:
    """The ranges of some videos that fit a text best, the best first, and on what `basis` anything may be said of them.

    By search alone there is an order, or a probability of the space's own, and `present` is None. A model that looked
    (`kinodex.jobs.verdicts`) or an agent says that it is there or not, for the `reason`. `candidates` are the best
    ranges in any case; their scores are `evidence` on the scale from 0 to 1 of `kinodex.agent.videos.scale`, which
    orders the ranges of one text and says nothing across texts. `evidence` is the greatest deviation found, in robust
    standard deviations; of an agent it is None.
    """

    text: str
    candidates: tuple[Moment, ...]
    present: bool | None
    by: str
    basis: Basis = "ranking"
    evidence: float | None = None
    reason: str = ""
    noise: str | None = None
    """Why the search behind it means nothing, where it does: see `LibraryReader.noise`."""
    looked: Looked | None = field(default=None, compare=False)
    """The calls of the model that looked at the ranges, where one did."""

    @property
    def ranges(self) -> tuple[Moment, ...]:
        """The ranges that are answered: of an agent those that it cites, else those that no model denied."""
        if self.present is False or (self.by != BY_SEARCH and not self.present):
            return ()
        return tuple(each for each in self.candidates if each.present is not False)

    @property
    def claim(self) -> str:
        """One line that says what the basis allows."""
        if self.by == BY_SEARCH:
            return claim(self.candidates) if self.candidates else self.reason
        verdict = {True: "present", False: "absent", None: "no verdict"}[self.present]
        return f"{verdict}, by {self.by}" + (f": {self.reason}" if self.reason else "")


def ground(
    library: LibraryReader,
    environment: Environment,
    text: str,
    videos: Sequence[VideoRow] = (),
    *,
    most: int = MOST,
    in_: AnchorsFrom = "all",
) -> Grounding:
    """Find the ranges of the videos, or of all, that fit a text best, by pictures, words or both.

    `environment` holds all videos of the library: what is usual is taken from many of them. Raises UsageError for an
    empty text, and for `most` below 1.
    """
    if not text.strip():
        raise UsageError("got an empty text; say in words what happens")
    if most < 1:
        raise UsageError(f"got most={most}; ask for at least 1 range")
    named = [row.video_id for row in videos]
    if not named:
        nearest = environment.nearest([text], NEAREST_VIDEOS, anchors_from=in_)
        named = [video.video_id for video in nearest.videos]
    searched = [each for each in named if _holds_anything(environment, each)]
    if not searched:
        return Grounding(text, (), None, BY_SEARCH, "ranking", 0.0, NOTHING_HELD)
    among = _usual_videos(environment, searched)
    usual = usual_cosines(environment, text, among)
    least_cosine = library.sentences.least_cosine()
    found: list[EvidenceRange] = []
    for video_id in searched:
        evidence = video_evidence(environment, text, video_id, usual, among, in_, least_cosine)
        found += evidence_ranges(evidence, cut_times(environment.segments(video_id)), most)
    found.sort(key=lambda each: (-each.deviation, each.video_id, each.start_s))
    noise = None if in_ == "words" else environment.source.noise()
    sigmoid = library.sigmoid(environment.source.space, text) if noise is None else None
    candidates = tuple(_moment(library, environment, each, text, sigmoid) for each in found[:most])
    best, reason = (found[0].deviation, "") if found else (0.0, NOTHING_FITS)
    return Grounding(text, candidates, None, BY_SEARCH, basis_of(candidates), best, reason, noise)


def with_verdicts(grounding: Grounding, judged: Sequence[Moment]) -> Grounding:
    """The grounding with a model's verdicts: it is present if it is in one range, absent if it is in none of all."""
    said = [each.present for each in judged]
    present = True if any(said) else False if said and None not in said else None
    return replace(grounding, candidates=tuple(judged), present=present, basis=basis_of(judged))


def arranged_by(rule: MomentRule, grounding: Grounding, segments_of: SegmentsOf) -> Grounding:
    """The same ranges, padded, joined and ended at cuts by the rule of exports; weaker ones stay apart from answers."""
    strong = grounding.ranges
    weak = [each for each in grounding.candidates if each not in strong]
    return replace(grounding, candidates=(*arranged(strong, rule, segments_of), *arranged(weak, rule, segments_of)))


def as_json(grounding: Grounding) -> dict[str, Any]:
    """A grounding as JSON has it: times that a player shows, and those of the file's timestamps."""
    shown = [
        {
            "video_id": each.video.video_id,
            "title": each.video.title,
            "start_s": each.start_s,
            "end_s": each.end_s,
            "presentation_start_s": each.presentation_start_s,
            "presentation_end_s": each.presentation_end_s,
            "score": each.score,
            "found_in": each.source,
            "basis": each.basis,
            "probability": each.probability,
            "present": each.present,
            "reason": each.reason,
        }
        for each in grounding.candidates
    ]
    answered = [each in grounding.ranges for each in grounding.candidates]
    return {
        "text": grounding.text,
        "basis": grounding.basis,
        "present": grounding.present,
        "claim": grounding.claim,
        "by": grounding.by,
        "evidence": grounding.evidence,
        "reason": grounding.reason,
        "noise": grounding.noise,
        "ranges": [each for each, is_one in zip(shown, answered, strict=True) if is_one],
        "weaker": [each for each, is_one in zip(shown, answered, strict=True) if not is_one],
    }


def _usual_videos(environment: Environment, searched: Sequence[str]) -> list[str]:
    """The videos searched, and others evenly spaced over the library, `USUAL_VIDEOS` in all if there are so many."""
    others = sorted({video.video_id for video in environment.videos} - set(searched))
    count = min(len(others), max(USUAL_VIDEOS - len(searched), 0))
    spaced = [others[at * len(others) // count] for at in range(count)]
    return [*searched, *(each for each in spaced if _holds_anything(environment, each))]


def _holds_anything(environment: Environment, video_id: str) -> bool:
    """False for a video of which the library has neither frames nor words: nothing can be found in it."""
    return environment.pictured(video_id) or bool(environment.source.words(video_id))


def _moment(
    library: LibraryReader, environment: Environment, found: EvidenceRange, text: str, sigmoid: Sigmoid | None
) -> Moment:
    score = float(calibrate(np.array(found.deviation)))
    found_in = "words" if found.by_words else "frames"
    moment = Moment(library.video(found.video_id), found.start_s, found.end_s, text, score, found_in)
    if sigmoid is None or found.by_words or not environment.pictured(found.video_id):
        return moment
    times_s = environment.times(found.video_id)
    inside = (times_s >= found.start_s) & (times_s < found.end_s)
    best = float(environment.cosines(text, found.video_id)[inside].max(initial=-1.0))
    return replace(moment, basis="probability", probability=sigmoid.probability(best))


# Grounding by an agent: its evidence is the ranges, and "insufficient evidence" says that there are none.

QUESTION = "When do we see the following: {text}?"
EVIDENCE = "evidence"


def grounding_question(text: str) -> Question:
    """The question by which an agent is asked for the ranges of a text."""
    return Question(QUESTION.format(text=text.strip().rstrip(".?!")))


def text_of(question: str) -> str:
    """The text of a grounding's question; any other question is its own."""
    before, after = QUESTION.split("{text}")
    is_grounding = question.startswith(before) and question.endswith(after)
    return question[len(before) : len(question) - len(after)] if is_grounding else question


def grounding_of(library: LibraryReader, text: str, answer: Answer, by: str, most: int) -> Grounding:
    """The ranges that an agent's answer cites, at most `most`, in order of video and time: an agent does not rank them.

    An event is there if the agent answered and cited something, and it is not if the agent says so. All that an answer
    without citations was shown is no range of the event: such an answer, one that a budget ended and an invalid one are
    no verdict.
    """
    present = answer.status == "answered" and answer.evidence_cited and bool(answer.evidence)
    said = True if present else False if answer.status == "insufficient_evidence" else None
    basis: Basis = "ranking" if said is None else "verified"
    candidates = tuple(
        Moment(library.video(each.video_id), each.start_s, each.end_s, text, None, EVIDENCE, basis=basis)
        for each in answer.evidence[:most]
    )
    reason = answer.reason or (answer.text or answer.status.replace("_", " "))
    return Grounding(text, candidates, said, by, basis, reason=reason, noise=answer.noise)


async def ground_with(
    library: LibraryReader,
    environment: Environment,
    text: str,
    agent: str,
    choice: ModelChoice,
    *,
    most: int = MOST,
) -> Grounding:
    """Ask an agent for the ranges of a text in the environment's videos; raises as `kinodex.agent.ask.ask` does."""
    from kinodex.agent.ask import ask  # it knows all agents

    async with chosen_models(choice) as models:
        question, models_by_role = grounding_question(text), models(environment)
        answer = await ask(question, environment, models_by_role, agent=agent)
    return grounding_of(library, text, answer, agent, most)


# Evidence for a text along a video: how far each stored frame, by its picture or the words at its time, stands out.
#
# A picture's evidence is its cosine with the text less the text's median over many videos, so that an event which
# fills a whole video stands out too, in robust standard deviations. These are not the text's own, as in the agents'
# searches, but the mean of `EVERYDAY` texts: a text that resembles much has a wide distribution of its own and is not
# told by it from one that is found nowhere (docs/measured.md). Words have the scale of the agents' searches, and count
# for the whole time of their line.

PLACES = 4
"""A line counts if chance would find fewer lines that match as well."""
WINDOW_S = 2.0
"""Length of the window over which the evidence of pictures is averaged: a single odd frame is no event."""
EVERYDAY = (
    "a dog", "a cat", "a horse", "a bird", "a fish", "a car", "a bus", "a train", "a boat", "a plane", "a bicycle",
    "a house", "a bridge", "a castle", "a tree", "a flower", "an apple", "a person", "two people", "a crowd of people",
    "a table in a room", "a clock", "a book", "a guitar", "the sea", "a desert", "snow on mountains", "a forest",
    "a city at night", "a meadow by day", "a title card with a word", "nothing but the sky",
)  # fmt: skip
"""Texts by which a space shows how far its cosines spread."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Evidence along one video: frame `i` is shown in `[start_s[i], end_s[i])` and stands out by `deviation[i]`.

    `by_words[i]`: words at its time stand out more than its picture does.
    """

    video_id: str
    start_s: Floats
    end_s: Floats
    deviation: Floats
    by_words: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Usual:
    """Cosines that are usual in some videos: the median of one text, and the spread that texts have there."""

    median: float
    spread: float


def usual_cosines(environment: Environment, text: str, among: Sequence[str]) -> Usual:
    """Compare all frames of the videos `among`, which hold those searched, with a text and with `EVERYDAY` texts."""
    texts = environment.source.embed_texts([text, *EVERYDAY])
    cosines = np.concatenate([environment.source.in_memory(each).units @ texts.T for each in among]).astype(np.float64)
    medians = np.median(cosines, axis=0)
    spread = SAME_DISTANCE_SHARE * float(np.median(np.abs(cosines - medians), axis=0)[1:].mean())
    return Usual(float(medians[0]), spread if spread > FLAT else 0.0)


def shown_times(environment: Environment, video_id: str) -> tuple[Floats, Floats]:
    """Begin and end of the time for which each stored frame of a video is shown."""
    start_s = environment.times(video_id)
    return start_s, np.append(start_s[1:], max(environment.video(video_id).end_s, float(start_s[-1])))


def video_evidence(
    environment: Environment,
    text: str,
    video_id: str,
    usual: Usual,
    among: Sequence[str],
    in_: AnchorsFrom = "all",
    least_cosine: float = -1.0,
) -> Evidence:
    """Compare a text with all frames and lines of a video; words are as rare as they are in the videos `among`.

    A line counts by its words, or by its meaning from `least_cosine` on.
    """
    start_s, end_s = shown_times(environment, video_id)
    pictures = words = np.full(len(start_s), NO_MATCH)
    if in_ != "words" and usual.spread > FLAT:
        deviations = (environment.cosines(text, video_id) - usual.median) / usual.spread
        pictures = smoothed(deviations, start_s, end_s)
    if in_ != "frames":
        words = _words(environment, text, video_id, among, start_s, end_s, least_cosine)
    return Evidence(video_id, start_s, end_s, np.maximum(pictures, words), words > pictures)


def smoothed(values: Floats, start_s: Floats, end_s: Floats, window_s: float = WINDOW_S) -> Floats:
    """Mean of values `[n]` or `[n, t]` over the time around each frame's middle, half a window before and after it."""
    edges_s = np.append(start_s, end_s[-1:])
    lengths_s = end_s - start_s
    columns = values.reshape(len(values), -1)
    integral = np.concatenate([np.zeros((1, columns.shape[1])), np.cumsum(columns * lengths_s[:, None], axis=0)])
    middle_s = (start_s + end_s) / 2
    low_s = np.maximum(middle_s - window_s / 2, edges_s[0])
    high_s = np.minimum(middle_s + window_s / 2, edges_s[-1])
    length_s = np.maximum(high_s - low_s, 0.0)[:, None]
    area = _between(integral, edges_s, columns, high_s) - _between(integral, edges_s, columns, low_s)
    means: Floats = np.where(length_s > 0, area / np.where(length_s > 0, length_s, 1.0), columns)
    return means.reshape(values.shape)


def _between(integral: Floats, edges_s: Floats, columns: Floats, time_s: Floats) -> Floats:
    """The integral `[n, t]` of step functions from the first edge to each time."""
    at = np.clip(np.searchsorted(edges_s, time_s, side="right") - 1, 0, len(columns) - 1)
    found: Floats = integral[at] + columns[at] * (time_s - edges_s[at])[:, None]
    return found


def _words(
    environment: Environment,
    text: str,
    video_id: str,
    among: Sequence[str],
    start_s: Floats,
    end_s: Floats,
    least_cosine: float,
) -> Floats:
    """Deviation of the best line at each frame's time; `NO_MATCH` where no line matches by words or meaning."""
    found = np.full(len(start_s), NO_MATCH)
    lines = environment.source.lines(video_id)
    if not lines:
        return found
    deviations = line_deviations(environment.source, [text], video_id, among, PLACES, least_cosine)[:, 0]
    cosines = environment.source.line_cosines(text, video_id)
    meant = np.full(len(lines), False) if cosines is None else cosines >= least_cosine
    for line, deviation, by_meaning in zip(lines, deviations.tolist(), meant.tolist(), strict=True):
        if not (by_meaning or shares_words(text, line.text)):
            continue
        at = (start_s < line.end_s) & (end_s > line.start_s)
        found[at] = np.maximum(found[at], deviation)
    return found


# Ranges in which evidence stands out: grown around its peaks, and cut at shot borders where these are near.

KEEP_SHARE = 0.7
"""A range goes on while the evidence is at least this share of its peak."""
BRIDGE_S = 2.0
"""A shorter stretch of weaker evidence does not end a range."""


@dataclass(frozen=True, slots=True)
class EvidenceRange:
    """A range `[start_s, end_s)` of a video, and the deviation of its peak."""

    video_id: str
    start_s: float
    end_s: float
    deviation: float
    by_words: bool


def evidence_ranges(evidence: Evidence, borders_s: Sequence[float], most: int) -> list[EvidenceRange]:
    """Find the `most` ranges with the highest peaks, the best first; none of them overlap.

    `borders_s` are the times at which shots begin, in order. Evidence at or below 0 is none.
    """
    free = np.isfinite(evidence.deviation) & (evidence.deviation > 0)
    found: list[EvidenceRange] = []
    while len(found) < most and free.any():
        peak = int(np.argmax(np.where(free, evidence.deviation, -np.inf)))
        first, last = _run(evidence, free, peak)
        free[first : last + 1] = False
        start_s, end_s = _snapped(evidence, first, last, peak, borders_s)
        if all(end_s <= other.start_s or start_s >= other.end_s for other in found):
            deviation = float(evidence.deviation[peak])
            found.append(EvidenceRange(evidence.video_id, start_s, end_s, deviation, bool(evidence.by_words[peak])))
    return found


def _run(evidence: Evidence, free: NDArray[np.bool_], peak: int) -> tuple[int, int]:
    """The first and last frame of the run around a peak; weaker stretches up to `BRIDGE_S` long are bridged."""
    strong = free & (evidence.deviation >= KEEP_SHARE * evidence.deviation[peak])
    first = last = peak
    while (before := _next(strong, free, first, -1)) is not None:
        if evidence.start_s[first] - evidence.end_s[before] > BRIDGE_S:
            break
        first = before
    while (after := _next(strong, free, last, 1)) is not None:
        if evidence.start_s[after] - evidence.end_s[last] > BRIDGE_S:
            break
        last = after
    return first, last


def _next(strong: NDArray[np.bool_], free: NDArray[np.bool_], at: int, step: int) -> int | None:
    """The next strong frame in a direction, None if another range or the video's end comes first."""
    at += step
    while 0 <= at < len(strong) and free[at]:
        if strong[at]:
            return at
        at += step
    return None


def _snapped(evidence: Evidence, first: int, last: int, peak: int, borders_s: Sequence[float]) -> tuple[float, float]:
    """The ends of a run, each moved to the nearest shot border within `SNAP_S` that leaves the peak inside."""
    start_s, end_s = float(evidence.start_s[first]), float(evidence.end_s[last])
    borders: Floats = np.asarray(borders_s, float)
    before = borders[borders <= evidence.start_s[peak]]
    after = borders[borders >= evidence.end_s[peak]]
    return _nearest_range(before, start_s), _nearest_range(after, end_s)


def _nearest_range(borders_s: Floats, time_s: float) -> float:
    if not len(borders_s):
        return time_s
    nearest = float(borders_s[np.argmin(np.abs(borders_s - time_s))])
    return nearest if abs(nearest - time_s) <= SNAP_S else time_s
