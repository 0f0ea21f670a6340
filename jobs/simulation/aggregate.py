"""Aggregate trials: means with errors clustered by video, and differences on the same questions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jobs.evaluation.score.statistics import Estimate, estimate
from jobs.simulation.sweeps import Sweep
from jobs.simulation.trial import FRAMES_AT_MOST, TrialResult
from jobs.simulation.world.assumptions import Noise, Scenery

FIGURES = ("found", "frames_to_evidence", "accuracy", "frames", "rounds")


@dataclass(frozen=True, slots=True)
class Means:
    """Means over questions: the share whose evidence was shown and that of right answers, frames to evidence (never
    shown counts as `FRAMES_AT_MOST`), frames shown in all, and rounds."""

    found: Estimate
    frames_to_evidence: Estimate
    accuracy: Estimate
    frames: Estimate
    rounds: Estimate


@dataclass(frozen=True, slots=True)
class Point:
    """Figures of one trial, and its differences from the one that it is compared with, question by question."""

    x: float | str
    series: str
    means: Means
    difference: Means | None


@dataclass(frozen=True, slots=True)
class SweepResult:
    """Figures of a sweep. `pooled` holds, for a choice, each value's differences over the questions of all worlds
    together; the same video in two worlds is one cluster."""

    name: str
    title: str
    axis: str
    kind: str
    against: float | str
    points: tuple[Point, ...]
    pooled: tuple[Point, ...] = ()


@dataclass(frozen=True, slots=True)
class Simulation:
    """Content of `simulate.json`: figures of no model and of no video."""

    questions: str
    """The question set in one line."""
    seed: int
    scenery: Scenery
    """The assumptions where a sweep makes no other."""
    noise: Noise
    sweeps: tuple[SweepResult, ...]
    simulated: bool = True


Values = dict[str, list[float]]


def aggregate_sweep(sweep: Sweep, results: Sequence[Sequence[TrialResult]]) -> SweepResult:
    """Compute the figures of a sweep from the results of its trials, in order."""
    values = [_values(each) for each in results]
    places = {(trial.x, trial.series): at for at, trial in enumerate(sweep.trials)}
    points, differences = [], []
    for at, trial in enumerate(sweep.trials):
        compared = (trial.x, str(sweep.against)) if sweep.kind == "conditions" else (sweep.against, trial.series)
        other = places[compared]
        clusters = [each.video for each in results[at]]
        difference = {name: _less(values[at][name], values[other][name]) for name in FIGURES}
        differences.append((difference, clusters))
        against = None if other == at else _means(difference, clusters)
        points.append(Point(trial.x, trial.series, _means(values[at], clusters, 0.0), against))
    pooled = _pooled(sweep, differences) if sweep.kind == "choice" else ()
    return SweepResult(sweep.name, sweep.title, sweep.axis, sweep.kind, sweep.against, tuple(points), pooled)


def _values(results: Sequence[TrialResult]) -> Values:
    return {
        "found": [float(each.frames_to_evidence is not None) for each in results],
        "frames_to_evidence": [float(_frames_to_evidence(each)) for each in results],
        "accuracy": [float(each.right) for each in results],
        "frames": [float(each.frames) for each in results],
        "rounds": [float(each.rounds) for each in results],
    }


def _frames_to_evidence(result: TrialResult) -> int:
    return FRAMES_AT_MOST if result.frames_to_evidence is None else result.frames_to_evidence


def _less(values: Sequence[float], others: Sequence[float]) -> list[float]:
    return [value - other for value, other in zip(values, others, strict=True)]


def _means(values: Values, clusters: Sequence[str], least: float = -math.inf) -> Means:
    """`least` is the lowest that a mean can be: 0, or without end for differences; shares then end at 1."""
    most = dict.fromkeys(("found", "accuracy"), math.inf if least else 1.0)
    return Means(**{name: estimate(values[name], clusters, least, most.get(name, math.inf)) for name in FIGURES})


def _pooled(sweep: Sweep, differences: Sequence[tuple[Values, list[str]]]) -> tuple[Point, ...]:
    pooled = []
    for x in dict.fromkeys(trial.x for trial in sweep.trials):
        mine = [each for trial, each in zip(sweep.trials, differences, strict=True) if trial.x == x]
        values = {name: [value for difference, _ in mine for value in difference[name]] for name in FIGURES}
        clusters = [video for _, videos in mine for video in videos]
        pooled.append(Point(x, "all worlds", _means(values, clusters), None))
    return tuple(pooled)
