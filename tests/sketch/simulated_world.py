"""A world that does not exist: videos, questions and a model drawn from stated assumptions.

May import `agent` and `index`; nothing here is a result about a real model.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinodex.agent.environment import Environment
from kinodex.agent.errors import NeedsLanguage
from kinodex.agent.protocol import (
    Exchange,
    Note,
    Question,
    R,
    Request,
    ScoredSegment,
    Segment,
    ShownFrame,
    Video,
    citation_numbers,
)
from kinodex.agent.requests.answer import AnswerFrames, Guess, Recall
from kinodex.agent.requests.tree import Decide, DiscoverQueries, ProposeQueries, ScoreSegments
from kinodex.agent.variants.eea import ScoreAndPropose
from kinodex.index.rows import FrameVectors, StoredFrame
from kinodex.index.search.in_memory import InMemory
from kinodex.index.spaces.towers import Fingerprint

if TYPE_CHECKING:
    from kinodex.agent.environment import AnchorsFrom
    from kinodex.index.rows import (
        CaptionRow,
        ClipRow,
        DetectionRow,
        Hit,
        SceneRow,
        ScreenTextRow,
        SegmentRow,
        TranscriptRow,
    )

# Assumptions of a simulation: similarities in a video, and errors of a model that sees, rewards and answers.


@dataclass(frozen=True, slots=True)
class Scenery:
    """Cosines of a query with a video's frames, in standard deviations of the unrelated frames.

    None of this was measured on real videos. Where nothing else is said, it is such that EEA ends after as many frames
    as its paper reports (docs/simulation.md); a study varies it and says for which values its findings hold.
    """

    match: float = 6.0
    """By how many deviations evidence stands out for a query that fits it; shots differ by half of it."""
    fits: float = 0.7
    """Chance that a query which ought to match the evidence does so at all."""
    lookalikes: float = 2.0
    """Places an hour that a query matches as well as the evidence, and that are something else."""
    shot_s: float = 6.0
    """Median length of a shot. Frames of one shot share their deviation but for a part."""
    flicker: float = 0.4
    """Standard deviation of a frame within its shot; that of whole shots is such that both make 1."""


@dataclass(frozen=True, slots=True)
class Noise:
    """Errors of a simulated model. Rewards are points from 0 to 100, all chances from 0 to 1."""

    reward: float = 15.0
    """Standard deviation of a segment's reward."""
    bias: float = 0.0
    """Points added to every reward."""
    step: float = 5.0
    """Rewards are multiples of this, as language models give them; 0: any number."""
    floor: float = 20.0
    """Rewards below this become 0: the model sees nothing that has to do with the question."""
    context_s: float = 60.0
    """At this distance from the evidence a frame looks half as relevant as in it."""
    fooled: float = 0.5
    """Chance that a lookalike also earns the reward of evidence."""
    misled: float = 0.15
    """Chance that a frame of a lookalike that does so is taken to show what is asked for; a guess follows."""
    selection: float = 0.05
    """Standard deviation of what the policy adds to a candidate's score, of 1, before it takes the highest."""
    suffices: float = 0.5
    """Chance that a frame in the evidence shows what is asked for."""
    understands: float = 0.7
    """Chance that a question whose evidence was seen is answered rightly."""
    false_confidence: float = 0.17
    """Chance, at every decision, of an answer from frames that do not show it: a guess."""
    discovers: float = 0.2
    """Chance that a query proposed on seeing new frames is one that ought to match the evidence."""


# A model that knows the evidence of a question and answers with set noise: for studying search, for nothing else.
#
# What it is shown decides what it may use, as with a real model:
#
# - A segment's reward rests on the frames at its borders: 100 for one in the evidence, less the farther it is from it
#   (half at `context_s`), 100 for one in a lookalike that fools it; the better border counts, then bias and noise.
# - The policy answers if a frame in its memory suffices, rightly by the chance `understands`; else it guesses, by the
#   chance `false_confidence` at any time and by the chance `misled` for a frame of a lookalike that fools it; else it
#   explores the candidate with the highest score, after some noise.
# - Queries that it proposes on seeing frames ought to fit by the chance `discovers`, but always do when a frame shows
#   the evidence or what is next to it.
#
# Chances are drawn once for a question and looked up by frame, segment and decision, so that two agents which show it
# the same get the same, and comparisons are paired.

PROPOSED = 2
"""Queries proposed on seeing new frames (the paper's prompt asks for 2 to 5, or none)."""
DECISIONS = 64
NEARBY = 0.5
"""Least relevance of a frame that counts as next to the evidence."""


class SimulatedModel:
    """Model of one `World`; raises `NeedsLanguage` for requests about more than frames."""

    name = "simulated"
    has_language = True

    def __init__(self, world: World, noise: Noise, seed: int) -> None:
        self.world, self.noise = world, noise
        self._seed = [seed, *world.spec.question_id.encode()]
        chance = np.random.default_rng([*self._seed, 1])
        self._suffices = world.evidence & (chance.random(len(world.evidence)) < noise.suffices)
        fooled = chance.random(int(world.lookalike.max()) + 1) < noise.fooled
        fooling = (world.lookalike > 0) & fooled[world.lookalike]
        self._misled = fooling & (chance.random(len(fooling)) < noise.misled)
        closeness = 1 / (1 + world.distance_s / noise.context_s)
        self._relevance = np.where(fooling, 1.0, closeness)
        self._understood = bool(chance.random() < noise.understands)
        self._wrong = (world.spec.option + int(chance.integers(1, world.spec.options))) % world.spec.options
        self._guess = int(chance.integers(world.spec.options))
        self._confident = chance.random(DECISIONS) < noise.false_confidence
        self._fitting = chance.random(DECISIONS) < noise.discovers
        self._decisions = self._proposals = 0

    async def ask(self, request: Request[R]) -> Exchange[R]:
        reply = request.Reply.model_validate(self._reply(request))
        return Exchange(reply, None, raw=reply.model_dump_json())

    def _reply(self, request: Request[Any]) -> dict[str, Any]:
        match request:
            case DiscoverQueries():
                return {"queries": self.world.first}
            case ProposeQueries(known=known, frames=frames):
                return {"queries": self._propose(known, frames)}
            case ScoreAndPropose(segments=segments, known=known):
                scores = [self._score(segment) for segment in segments]
                return {"segments": scores, "queries": self._propose(known, request.new_frames)}
            case ScoreSegments(segments=segments):
                return {"segments": [self._score(segment) for segment in segments]}
            case Decide():
                return self._decide(request)
            case AnswerFrames(frames=frames) | Guess(frames=frames) | Recall(frames=frames):
                return self._answer(frames)
        raise NeedsLanguage(
            f"the simulated model knows frames only and cannot answer {type(request).__name__}; "
            "simulate agents that look at frames: eea, vca, uniform, blind, random"
        )

    def _score(self, segment: Segment) -> dict[str, Any]:
        """Reward a segment by its better border; the video's own ends show nothing."""
        last = len(self._relevance)
        borders = [number for number in map(round, (segment.start_s, segment.end_s)) if 0 < number < last]
        seen = max((float(self._relevance[number]) for number in borders), default=0.0)
        drawn = np.random.default_rng([*self._seed, 2, round(segment.start_s), round(segment.end_s)])
        points = 100 * seen + self.noise.bias + self.noise.reward * drawn.standard_normal()
        if self.noise.step:
            points = self.noise.step * round(points / self.noise.step)
        points = 0.0 if points < self.noise.floor else min(points, 100.0)
        return {"segment": segment.number, "score": points}

    def _decide(self, request: Decide) -> dict[str, Any]:
        open_ones = [each for each in request.candidates if each.explorable]
        if request.must_answer or not open_ones or self._ready(request.frames):
            return self._answer(request.frames)
        return {"action": "explore", "segment": self._next(open_ones, 1.0 if request.scores == "fused" else 100.0)}

    def _ready(self, frames: Sequence[ShownFrame]) -> bool:
        """True if the policy answers now: the frames suffice, or seem to."""
        self._decisions += 1
        convinced = any(self._suffices[frame.frame_no] or self._misled[frame.frame_no] for frame in frames)
        return convinced or bool(self._confident[(self._decisions - 1) % DECISIONS])

    def _next(self, open_ones: Sequence[ScoredSegment], most: float) -> int:
        """Choose the candidate with the highest score; without scores, any. Divided ones come last."""
        fresh = [each for each in open_ones if not each.divided] or list(open_ones)
        drawn = np.random.default_rng([*self._seed, 3, self._decisions])
        blur = self.noise.selection * drawn.standard_normal(len(fresh)) + 1e-6 * drawn.random(len(fresh))
        scores = np.array([(each.score or 0.0) / most for each in fresh]) + blur
        return fresh[int(np.argmax(scores))].segment.number

    def _answer(self, frames: Sequence[ShownFrame]) -> dict[str, Any]:
        shown = self._sufficient(frames)
        known = self.world.spec.option if self._understood else self._wrong
        option = known if shown else self._guess
        letter = self.world.question.lettered[option][0]
        return {"action": "answer", "option": letter, "answer": None, "evidence": shown}

    def _sufficient(self, frames: Sequence[ShownFrame]) -> list[int]:
        """List the numbers of the shown frames that hold the answer."""
        numbers, _ = citation_numbers(frames)
        return [number for number, frame in zip(numbers, frames, strict=True) if self._suffices[frame.frame_no]]

    def _propose(self, known: Sequence[str], frames: Sequence[ShownFrame]) -> list[str]:
        self._proposals += 1
        nearby = any(self._relevance[frame.frame_no] >= NEARBY for frame in frames)
        fits = nearby or bool(self._fitting[(self._proposals - 1) % DECISIONS])
        fitting, others = self.world.later
        new = [query for query in (fitting if fits else others) if query not in known]
        return new[:PROPOSED]


# A video that does not exist, as an environment reads it: vectors made by arithmetic, pictures without a picture.

FRAME_S = 1.0
"""Seconds between frames, as an ingest samples by default."""


@dataclass(frozen=True)
class SimulatedVideo:
    """One made-up video as the `VideoSource` of an environment: it has frames, and nothing is written or said."""

    video_id: str
    units: NDArray[np.float32]
    """[n, dim], the frames' vectors, one every `FRAME_S`."""
    axes: Mapping[str, NDArray[np.float32]]
    """By text the unit vector [dim] of each that can be looked for."""

    @property
    def uri(self) -> str:
        return f"simulated:{self.video_id}"

    @property
    def space(self) -> Fingerprint:
        """A space without a model."""
        return Fingerprint("simulated", model="", weights_sha256="", preprocess="", dim=self.units.shape[1])

    @property
    def videos(self) -> tuple[Video, ...]:
        return (Video(self.video_id, self.video_id, 0.0, self.index_frames * FRAME_S),)

    @property
    def index_frames(self) -> int:
        return len(self.units)

    def noise(self) -> None:
        return None

    @cached_property
    def _in_memory(self) -> InMemory:
        count = len(self.units)
        times_s = np.arange(count, dtype=np.float64) * FRAME_S
        stored = FrameVectors(np.arange(count, dtype=np.int32), times_s, self.units.astype(np.float16))
        return InMemory(stored, self.units)

    def in_memory(self, video_id: str) -> InMemory:
        return self._in_memory

    def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.stack([self.axes[text] for text in texts])

    def cosines(self, text: str, video_id: str) -> NDArray[np.float64]:
        return self._in_memory.cosines(self.axes[text]).astype(np.float64)

    def frames(self, video_id: str, frame_nos: Sequence[int]) -> list[StoredFrame]:
        return [StoredFrame(video_id, number, number * FRAME_S, 1, 1, b"") for number in frame_nos]

    def only(self, video_ids: Collection[str]) -> SimulatedVideo:
        return self

    def ranked(self, texts: Sequence[str], k: int, anchors_from: AnchorsFrom = "both") -> list[str]:
        return [self.video_id]

    def words(self, video_id: str) -> tuple[Note, ...]:
        return ()

    def lines(self, video_id: str) -> tuple[Note, ...]:
        return ()

    def line_cosines(self, text: str, video_id: str) -> NDArray[np.float64] | None:
        return None

    def segments(self, video_id: str) -> list[SegmentRow]:
        return []

    def captions(self, video_id: str) -> list[CaptionRow]:
        return []

    def detections(
        self, video_id: str, start_s: float | None, end_s: float | None, label: str | None
    ) -> list[DetectionRow]:
        return []

    def detection_labels(self, video_id: str) -> list[str]:
        return []

    def transcript(self, video_id: str, start_s: float, end_s: float) -> list[TranscriptRow]:
        return []

    def screen_text(self, video_id: str, start_s: float, end_s: float) -> list[ScreenTextRow]:
        return []

    def search_transcript(self, text: str, k: int) -> list[Hit]:
        return []

    def search_words(self, text: str, k: int) -> list[Hit]:
        return []

    def scenes(self, video_id: str) -> list[SceneRow]:
        return []

    def clips(self, video_id: str, model: str) -> list[ClipRow]:
        return []

    def add_clips(self, rows: Sequence[ClipRow]) -> None:
        """Drop captions: a simulation keeps nothing."""


# One question about one video that does not exist: where its evidence is, and what its queries resemble.
#
# Every query is an axis of the space, so a frame's cosine with it is whatever the similarity field says. A field has,
# in units of its own standard deviation:
#
# - noise that is the same all through a shot, whose frames look alike, but for some flicker from frame to frame;
# - the evidence, if the query fits: `match` on average, half as much to one and a half times that from shot to shot;
# - lookalikes: places with the same height and lengths as the evidence that are something else. Some belong to the
#   question, so that all its queries find them (the person in question appears elsewhere), others to one query alone.
#
# Of the queries that a question brings along, that of its subject and that of its true option ought to fit the
# evidence, and do so by the chance `fits`; those of the wrong options never do. Of the queries that can be proposed
# later, the first half ought to fit, by the same chance. A mean cosine, 0.2 or so in CLIP, is left out: nothing that
# agents use depends on it, for similarities are measured from the median.

Ranges = tuple[tuple[float, float], ...]
LATER = 12
"""Queries that can be proposed after the first ones."""
DEVIATION = 0.02
"""The cosine that is one standard deviation."""
SCENE_AXES = 16
SHOT_SPREAD = 0.8
SHARED = 0.5
"""Share of the lookalikes that all queries of a question find."""


@dataclass(frozen=True, slots=True)
class SimulatedQuestion:
    """A question: the video's length, the ranges that show the answer (seconds, half-open), and the true option."""

    question_id: str
    video: str
    duration_s: float
    evidence: Ranges
    option: int
    options: int = 4


@dataclass(frozen=True, slots=True)
class World:
    """A question in its environment, with what only the simulated model and the scorer may know.

    `evidence` and `lookalike` say by frame [n] what it is, `distance_s` how far it is from evidence; `first` and
    `later` are queries, the latter with those that ought to fit before the others.
    """

    spec: SimulatedQuestion
    question: Question
    environment: Environment
    evidence: NDArray[np.bool_]
    lookalike: NDArray[np.int_]
    """The number of the lookalike that a frame is in, from 1, of those that the first queries find; 0: none."""
    distance_s: NDArray[np.float64]
    first: tuple[str, ...]
    later: tuple[tuple[str, ...], tuple[str, ...]]


def make_world(spec: SimulatedQuestion, scenery: Scenery, seed: int) -> World:
    """Draw the world of a question, the same one for the same seed."""
    frames = max(2, int(spec.duration_s / FRAME_S))
    names = _names(spec)
    chance = np.random.default_rng([seed, *spec.question_id.encode()])
    shots = _shots(chance, frames, scenery.shot_s)
    evidence = _inside(spec.evidence, frames)
    lengths_s = [end_s - start_s for start_s, end_s in spec.evidence] or [10.0]
    shared = _places(chance, scenery.lookalikes * SHARED, frames, lengths_s, evidence)
    lookalike, fields = shared.copy(), []
    for number in range(len(names)):
        own = _places(chance, scenery.lookalikes * (1 - SHARED), frames, lengths_s, evidence)
        if number <= spec.options:
            lookalike = np.where(own > 0, lookalike.max() + own, lookalike)
        fits = chance.random() < scenery.fits and _ought_to_fit(number, spec)
        matching = (shared > 0) | (own > 0) | (evidence if fits else False)
        fields.append(_noise(chance, shots, scenery.flicker) + matching * _heights(chance, shots, scenery.match))
    units = _units(np.stack(fields, axis=1), shots, chance)
    first, later = names[: spec.options + 1], names[spec.options + 1 :]
    return World(
        spec=spec,
        question=_question(spec),
        environment=_environment(spec, units, names),
        evidence=evidence,
        lookalike=lookalike,
        distance_s=_distances(evidence),
        first=first,
        later=(later[: LATER // 2], later[LATER // 2 :]),
    )


def _names(spec: SimulatedQuestion) -> tuple[str, ...]:
    options = [f"option {number}" for number in range(spec.options)]
    later = [f"later clue {number}" for number in range(LATER)]
    return tuple(f"{name} of {spec.question_id}" for name in ("subject", *options, *later))


def _question(spec: SimulatedQuestion) -> Question:
    options = tuple(f"answer {number}" for number in range(spec.options))
    return Question(f"subject of {spec.question_id}", options)


def _ought_to_fit(number: int, spec: SimulatedQuestion) -> bool:
    """True if the query of this number, in the order of names, is about what the evidence shows."""
    later = number - spec.options - 1
    return number in (0, 1 + spec.option) or 0 <= later < LATER // 2


def _shots(chance: np.random.Generator, frames: int, median_s: float) -> NDArray[np.int_]:
    """Number the shot of each frame, [n]; lengths are log-normal."""
    lengths = np.maximum(1, median_s * np.exp(SHOT_SPREAD * chance.standard_normal(frames)) / FRAME_S).astype(int)
    return np.repeat(np.arange(frames), lengths)[:frames]


def _inside(ranges: Ranges, frames: int) -> NDArray[np.bool_]:
    """Mark the frames that some range shows; of a range between two frames, the one on screen then."""
    inside = np.zeros(frames, dtype=bool)
    for start_s, end_s in ranges:
        first = min(int(start_s / FRAME_S), frames - 1)
        inside[first : max(first + 1, int(np.ceil(end_s / FRAME_S)))] = True
    return inside


def _places(
    chance: np.random.Generator, an_hour: float, frames: int, lengths_s: Sequence[float], taken: NDArray[np.bool_]
) -> NDArray[np.int_]:
    """Place lookalikes: by frame [n], the number of its lookalike, from 1, or 0; none in the evidence."""
    places = np.zeros(frames, dtype=int)
    for number in range(chance.poisson(an_hour * frames * FRAME_S / 3600)):
        start, length = chance.integers(frames), max(1, int(chance.choice(lengths_s) / FRAME_S))
        places[start : start + length] = number + 1
    places[taken] = 0
    return places


def _noise(chance: np.random.Generator, shots: NDArray[np.int_], flicker: float) -> NDArray[np.float64]:
    whole: NDArray[np.float64] = chance.standard_normal(shots[-1] + 1)[shots] * np.sqrt(1 - flicker**2)
    return whole + flicker * chance.standard_normal(len(shots))


def _heights(chance: np.random.Generator, shots: NDArray[np.int_], match: float) -> NDArray[np.float64]:
    heights: NDArray[np.float64] = match * chance.uniform(0.5, 1.5, shots[-1] + 1)[shots]
    return heights


def _distances(evidence: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Measure seconds from each frame to the nearest one in the evidence, [n]; infinite if there is none."""
    numbers, at = np.arange(len(evidence)), np.flatnonzero(evidence)
    if len(at) == 0:
        return np.full(len(evidence), np.inf)
    after = np.searchsorted(at, numbers)
    left = np.abs(numbers - at[np.maximum(after - 1, 0)])
    right = np.abs(at[np.minimum(after, len(at) - 1)] - numbers)
    distances: NDArray[np.float64] = np.minimum(left, right) * FRAME_S
    return distances


def _units(fields: NDArray[np.float64], shots: NDArray[np.int_], chance: np.random.Generator) -> NDArray[np.float32]:
    """Make vectors [n, queries + scene axes]: the cosine with a query's axis is its field, the rest is the scene."""
    cosines = DEVIATION * fields
    length = np.linalg.norm(cosines, axis=1, keepdims=True)
    cosines *= np.minimum(1.0, 0.99 / np.maximum(length, 1e-9))
    scene = chance.standard_normal((shots[-1] + 1, SCENE_AXES))[shots]
    scene /= np.linalg.norm(scene, axis=1, keepdims=True)
    rest = np.sqrt(1 - (cosines**2).sum(axis=1, keepdims=True))
    units: NDArray[np.float32] = np.hstack([cosines, rest * scene]).astype(np.float32)
    return units


def _environment(spec: SimulatedQuestion, units: NDArray[np.float32], names: Sequence[str]) -> Environment:
    axes = dict(zip(names, np.eye(len(names), units.shape[1], dtype=np.float32), strict=True))
    return Environment(SimulatedVideo(spec.video, units, axes))
