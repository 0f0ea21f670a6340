"""The sweeps: agents under changing assumptions, and choices of EEA under assumptions of many kinds.

A choice is tried in sixteen worlds, every reward model of `REWARDS` with every retrieval of `MATCHES`, so that what is
found is not what one set of assumptions happens to favour.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from agent.retrieval.calibration import SIMILARITY_MIDPOINT
from agent.variants.eea.agent import EEA, EEAParameters
from agent.variants.eea.fusion import REWARD_TEMPERATURE
from jobs.errors import UsageError
from jobs.evaluation.run.systems import System
from jobs.simulation.trial import Trial, run_trial
from jobs.simulation.world.assumptions import Noise, Scenery
from jobs.simulation.world.world import SimulatedQuestion

# Nothing is said or written in simulated videos, so words and pictures cannot be told apart there.
AGENTS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "eea": ("eea", {}),
    **{f"eea, {what}": ("eea", off) for what, off in EEA.ablations.items() if "anchors_from" not in off},
    "vca": ("vca", {}),
    "uniform, 16 frames": ("uniform", {"frames": 16}),
}
REWARDS = {
    "usual rewards": Noise(),
    "graded rewards": Noise(reward=10.0, floor=0.0, context_s=180.0),
    "sparse rewards": Noise(reward=5.0, floor=30.0, context_s=10.0),
    "noisy rewards": Noise(reward=35.0, floor=0.0),
}
"""Reward models: the default; one that sees from afar; one that rewards only what is beside evidence; a poor one."""
MATCHES = {
    "weak matches": Scenery(match=3.0, fits=0.4, lookalikes=6.0),
    "usual matches": Scenery(),
    "strong matches": Scenery(match=9.0, fits=0.9, lookalikes=0.5),
    "repeated matches": Scenery(lookalikes=20.0),
}
"""Retrieval: hardly better than the best of thousands of unrelated frames (3.5 deviations), as assumed elsewhere,
far better, and good but with most matches something else, as where the same person is seen all the time."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """Trials along one axis. Under changing "conditions" a series is an agent, and each is compared with `against` at
    the same place; for a "choice" a series is a world, and each value is compared with the value `against` in it."""

    name: str
    title: str
    axis: str
    kind: Literal["conditions", "choice"]
    against: float | str
    trials: tuple[Trial, ...]


def all_sweeps() -> tuple[Sweep, ...]:
    """List every sweep, those of conditions first."""
    return (
        _conditions(
            "reward-noise", "Noise of the rewards", "standard deviation, points", (0, 10, 20, 35, 50), _set_noise
        ),
        _conditions(
            "match", "How well queries match", "evidence above the median, deviations", (1, 2, 3, 4, 6, 9), _set_match
        ),
        _conditions(
            "lookalikes",
            "Places that only look like evidence",
            "lookalikes an hour",
            (0, 3, 6, 15, 40),
            _set_lookalikes,
        ),
        _conditions("duration", "Length of the videos", "minutes", (5, 30, 60, 100, 180), _set_duration),
        _conditions("evidence", "Length of the evidence", "times as long", (0.25, 1, 4, 16), _lengthen),
        _conditions(
            "false-confidence",
            "Answers too early",
            "chance at a decision",
            (0.0, 0.1, 0.2, 0.4),
            _set_haste,
        ),
        _choice(
            "anchor-frames",
            "Anchors among the frames of a round",
            "B_s of B = 6",
            range(7),
            EEAParameters().anchor_frames,
            _set("anchor_frames"),
        ),
        _choice(
            "reward-temperature",
            "Temperature of the softmax behind the entropy",
            "points",
            (1, 3, 10, 30, 100),
            REWARD_TEMPERATURE,
            _set("reward_temperature"),
        ),
        _choice(
            "pooling",
            "Query score of a segment's anchors",
            "pooling",
            ("mean", "sum", "best"),
            EEAParameters().pooling,
            _set("pooling"),
        ),
        _choice("anchors", "Form of the anchors", "form", ("here", "paper"), "here", _set_anchors),
        _choice(
            "halfway",
            "Calibration of similarities",
            "deviations that become 0.5",
            (1.5, 3, 6, 12),
            SIMILARITY_MIDPOINT,
            _set_midpoint,
        ),
    )


def select_sweeps(names: Sequence[str]) -> tuple[Sweep, ...]:
    """Select the sweeps of these names, or all if there are no names; raise `UsageError` for an unknown one."""
    known = {sweep.name: sweep for sweep in all_sweeps()}
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        raise UsageError(f"there is no sweep {unknown!r}; the sweeps are {', '.join(known)}")
    return tuple(known[name] for name in names or known)


def check_agents(also: Sequence[System], questions: Sequence[SimulatedQuestion]) -> None:
    """Let each agent answer one question, so that one that cannot work fails now and not after minutes of sweeps.

    Raises `UsageError` for an agent that reads words, and any error of the agent itself.
    """
    for each in also:
        wordy = [role for role in each.find_variant().roles if role in ("captioner", "grounding")]
        if wordy:
            raise UsageError(
                f"got --agent {each.name}, which asks a model as {wordy[0]}, and a simulated video has frames and no "
                "words; give an agent that looks at frames"
            )
        run_trial(Trial(0.0, each.name, each.agent, each.settings), questions[:1], seed=0)


def add_agents(sweeps: Sequence[Sweep], also: Sequence[System]) -> list[Sweep]:
    """Add further agents to sweeps as `with_agents` has them; raise `UsageError` if none of them takes any."""
    if also and all(sweep.kind == "choice" for sweep in sweeps):
        conditions = ", ".join(each.name for each in all_sweeps() if each.kind == "conditions")
        raise UsageError(
            f"got --agent {also[0].name} with --sweep {', '.join(each.name for each in sweeps)}, which only tries "
            f"settings of eea; leave --agent out, or name a sweep that compares agents: {conditions}"
        )
    return [with_agents(each, also) for each in sweeps]


def with_agents(sweep: Sweep, also: Sequence[System]) -> Sweep:
    """Add further agents to all places of a sweep of conditions; leave a choice of EEA as it is.

    Raises `UsageError` for an agent that the sweep compares anyway.
    """
    if sweep.kind != "conditions":
        return sweep
    known = {trial.series for trial in sweep.trials}
    if twice := [each.name for each in also if each.name in known]:
        raise UsageError(f"got --agent {twice[0]}, which is compared anyway; leave it out, or give it other settings")
    trials = [
        replace(trial, series=each.name, agent=each.agent, settings=each.settings)
        for trial in sweep.trials
        if trial.series == sweep.against
        for each in also
    ]
    return replace(sweep, trials=(*sweep.trials, *trials))


def _conditions(
    name: str, title: str, axis: str, values: Sequence[float], changed: Callable[[Trial, float], Trial]
) -> Sweep:
    trials = [
        changed(Trial(float(value), series, agent, settings), value)
        for value in values
        for series, (agent, settings) in AGENTS.items()
    ]
    return Sweep(name, title, axis, "conditions", "eea", tuple(trials))


def _choice(
    name: str,
    title: str,
    axis: str,
    values: Sequence[float | str],
    default: float | str,
    changed: Callable[[Trial, Any], Trial],
) -> Sweep:
    trials = [
        changed(Trial(_axis_value(value), f"{reward}, {match}", "eea", {}, scenery, noise), value)
        for value in values
        for reward, noise in REWARDS.items()
        for match, scenery in MATCHES.items()
    ]
    return Sweep(name, title, axis, "choice", _axis_value(default), tuple(trials))


def _axis_value(value: float | str) -> float | str:
    return value if isinstance(value, str) else float(value)


def _set_noise(trial: Trial, points: float) -> Trial:
    return replace(trial, noise=replace(trial.noise, reward=points))


def _set_match(trial: Trial, deviations: float) -> Trial:
    return replace(trial, scenery=replace(trial.scenery, match=deviations))


def _set_lookalikes(trial: Trial, an_hour: float) -> Trial:
    return replace(trial, scenery=replace(trial.scenery, lookalikes=an_hour))


def _set_duration(trial: Trial, minutes: float) -> Trial:
    return replace(trial, duration_s=60 * minutes)


def _lengthen(trial: Trial, times: float) -> Trial:
    return replace(trial, longer=times)


def _set_haste(trial: Trial, chance: float) -> Trial:
    return replace(trial, noise=replace(trial.noise, false_confidence=chance))


def _set_midpoint(trial: Trial, deviations: float) -> Trial:
    return replace(trial, similarity_midpoint=deviations)


def _set_anchors(trial: Trial, form: str) -> Trial:
    return replace(trial, settings={**trial.settings, "paper_anchors": form == "paper"})


def _set(name: str) -> Callable[[Trial, Any], Trial]:
    return lambda trial, value: replace(trial, settings={**trial.settings, name: value})
