"""Run one trial: an agent with its settings on all questions of a set, under one set of assumptions."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agent.ask_questions import ask
from agent.retrieval.calibration import SIMILARITY_MIDPOINT
from agent.trace.events import Event, Exchanged
from jobs.simulation.world.assumptions import Noise, Scenery
from jobs.simulation.world.model import SimulatedModel
from jobs.simulation.world.world import SimulatedQuestion, World, make_world

FRAMES_AT_MOST = 60
"""Count for evidence that was never shown: the frames of ten rounds of six, which is where agents stop."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A point of a sweep: `x` on its axis, in the `series` of that name.

    `duration_s` makes all videos that long, `longer` every evidence so many times as long.
    """

    x: float | str
    series: str
    agent: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    scenery: Scenery = field(default_factory=Scenery)
    noise: Noise = field(default_factory=Noise)
    similarity_midpoint: float = SIMILARITY_MIDPOINT
    duration_s: float | None = None
    longer: float = 1.0


@dataclass(frozen=True, slots=True)
class TrialResult:
    """Result of one question.

    `frames_to_evidence` counts the different frames shown until a request held one in the evidence, all frames of that
    request included; None if none did. `frames` are all that were shown.
    """

    video: str
    right: bool
    frames_to_evidence: int | None
    frames: int
    rounds: int


def run_trial(trial: Trial, questions: Sequence[SimulatedQuestion], seed: int) -> list[TrialResult]:
    """Answer every question, in order; equal arguments give equal results."""
    return asyncio.run(_all(trial, [_rescale(each, trial) for each in questions], seed))


def _rescale(spec: SimulatedQuestion, trial: Trial) -> SimulatedQuestion:
    """Give a question the trial's lengths; evidence begins at the same share of the video, or ends with it."""
    duration_s = trial.duration_s or spec.duration_s
    evidence = []
    for start_s, end_s in spec.evidence:
        length_s = min(trial.longer * (end_s - start_s), duration_s / 2)
        moved_s = min(start_s / spec.duration_s * duration_s, duration_s - length_s)
        evidence.append((moved_s, moved_s + length_s))
    return replace(spec, duration_s=duration_s, evidence=tuple(evidence))


async def _all(trial: Trial, questions: Sequence[SimulatedQuestion], seed: int) -> list[TrialResult]:
    return [await _one(trial, spec, seed) for spec in questions]


async def _one(trial: Trial, spec: SimulatedQuestion, seed: int) -> TrialResult:
    world = make_world(spec, trial.scenery, seed)
    world.environment.similarity_midpoint = trial.similarity_midpoint
    counter = _FrameCounter(world)
    answer = await ask(
        world.question,
        world.environment,
        SimulatedModel(world, trial.noise, seed),
        agent=trial.agent,
        parameters=trial.settings,
        on_event=counter.count,
    )
    right = answer.option == spec.option
    return TrialResult(spec.video, right, counter.frames_to_evidence, answer.ledger.frames, answer.rounds)


@dataclass(slots=True)
class _FrameCounter:
    """Counter of the frames that a run shows."""

    world: World
    shown: set[int] = field(default_factory=set)
    frames_to_evidence: int | None = None

    def count(self, event: Event) -> None:
        if isinstance(event, Exchanged) and self.frames_to_evidence is None:
            numbers = [frame.frame_no for frame in event.request.frames]
            self.shown.update(numbers)
            if any(self.world.evidence[number] for number in numbers):
                self.frames_to_evidence = len(self.shown)
