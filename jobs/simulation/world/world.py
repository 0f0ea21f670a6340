"""One question about one video that does not exist: where its evidence is, and what its queries resemble.

Every query is an axis of the space, so a frame's cosine with it is whatever the similarity field says. A field has,
in units of its own standard deviation:

- noise that is the same all through a shot, whose frames look alike, but for some flicker from frame to frame;
- the evidence, if the query fits: `match` on average, half as much to one and a half times that from shot to shot;
- lookalikes: places with the same height and lengths as the evidence that are something else. Some belong to the
  question, so that all its queries find them (the person in question appears elsewhere), others to one query alone.

Of the queries that a question brings along, that of its subject and that of its true option ought to fit the
evidence, and do so by the chance `fits`; those of the wrong options never do. Of the queries that can be proposed
later, the first half ought to fit, by the same chance. A mean cosine, 0.2 or so in CLIP, is left out: nothing that
agents use depends on it, for similarities are measured from the median.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agent.core.question import Question
from agent.environment import Environment
from jobs.simulation.world.assumptions import Scenery
from jobs.simulation.world.video import FRAME_S, SimulatedVideo

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
