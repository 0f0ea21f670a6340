"""One trial: an agent with its settings on all questions of a set, under one set of assumptions."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agent.ask_questions import ask
from agent.environment import SIMILARITY_MIDPOINT
from agent.trace.events import Event, Exchanged
from jobs.simulation.world.assumptions import Noise, Scenery
from jobs.simulation.world.model import SimulatedModel
from jobs.simulation.world.world import Sought, World, made_world

FRAMES_AT_MOST = 60
"""What counts for evidence that was never shown: the frames of ten rounds of six, which is where agents stop."""


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
    halfway: float = SIMILARITY_MIDPOINT
    duration_s: float | None = None
    longer: float = 1.0


@dataclass(frozen=True, slots=True)
class TrialResult:
    """What came of one question.

    `frames_to_evidence` counts the different frames shown until a request held one in the evidence, all frames of that
    request included; None if none did. `frames` are all that were shown.
    """

    video: str
    right: bool
    frames_to_evidence: int | None
    frames: int
    rounds: int


def run_trial(trial: Trial, questions: Sequence[Sought], seed: int) -> list[TrialResult]:
    """The outcome of every question, in order; the same for the same arguments."""
    return asyncio.run(_all(trial, [_stretched(each, trial) for each in questions], seed))


def _stretched(sought: Sought, trial: Trial) -> Sought:
    """The question with the trial's lengths; evidence begins at the same share of the video, or ends with it."""
    duration_s = trial.duration_s or sought.duration_s
    evidence = []
    for start_s, end_s in sought.evidence:
        length_s = min(trial.longer * (end_s - start_s), duration_s / 2)
        moved_s = min(start_s / sought.duration_s * duration_s, duration_s - length_s)
        evidence.append((moved_s, moved_s + length_s))
    return replace(sought, duration_s=duration_s, evidence=tuple(evidence))


async def _all(trial: Trial, questions: Sequence[Sought], seed: int) -> list[TrialResult]:
    return [await _one(trial, sought, seed) for sought in questions]


async def _one(trial: Trial, sought: Sought, seed: int) -> TrialResult:
    world = made_world(sought, trial.scenery, seed)
    world.environment.similarity_midpoint = trial.halfway
    watch = _Watch(world)
    answer = await ask(
        world.question,
        world.environment,
        SimulatedModel(world, trial.noise, seed),
        agent=trial.agent,
        parameters=trial.settings,
        on_event=watch.see,
    )
    right = answer.option == sought.option
    return TrialResult(sought.video, right, watch.frames_to_evidence, answer.ledger.frames, answer.rounds)


@dataclass(slots=True)
class _Watch:
    """Counts frames as a run shows them."""

    world: World
    shown: set[int] = field(default_factory=set)
    frames_to_evidence: int | None = None

    def see(self, event: Event) -> None:
        if isinstance(event, Exchanged) and self.frames_to_evidence is None:
            numbers = [frame.frame_no for frame in event.request.frames]
            self.shown.update(numbers)
            if any(self.world.evidence[number] for number in numbers):
                self.frames_to_evidence = len(self.shown)
