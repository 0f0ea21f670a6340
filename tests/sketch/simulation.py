"""Run a simulation from beginning to end: sweeps in several processes, `simulate.json` and tables of it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer
from pydantic import TypeAdapter

from kinodex.agent.ask import ask
from kinodex.agent.environment import SIMILARITY_MIDPOINT
from kinodex.agent.trace import Event, Exchanged
from kinodex.agent.variants.eea import EEA, REWARD_TEMPERATURE, EEAParameters
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.contenders import Contender, parse_contenders
from kinodex.jobs.eval.score import Estimate, estimate
from tests.sketch.simulated_world import Noise, Scenery, SimulatedModel, SimulatedQuestion, make_world
from tests.support.say import say

# Run one trial: an agent with its settings on all questions of a set, under one set of assumptions.

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
    return [asyncio.run(_one(trial, _rescale(each, trial), seed)) for each in questions]


def _rescale(spec: SimulatedQuestion, trial: Trial) -> SimulatedQuestion:
    """Give a question the trial's lengths; evidence begins at the same share of the video, or ends with it."""
    duration_s = trial.duration_s or spec.duration_s
    evidence = []
    for start_s, end_s in spec.evidence:
        length_s = min(trial.longer * (end_s - start_s), duration_s / 2)
        moved_s = min(start_s / spec.duration_s * duration_s, duration_s - length_s)
        evidence.append((moved_s, moved_s + length_s))
    return replace(spec, duration_s=duration_s, evidence=tuple(evidence))


async def _one(trial: Trial, spec: SimulatedQuestion, seed: int) -> TrialResult:
    world = make_world(spec, trial.scenery, seed)
    world.environment.similarity_midpoint = trial.similarity_midpoint
    shown: set[int] = set()
    until_evidence: list[int] = []

    def count(event: Event) -> None:
        if isinstance(event, Exchanged) and not until_evidence:
            numbers = [frame.frame_no for frame in event.request.frames]
            shown.update(numbers)
            if any(world.evidence[number] for number in numbers):
                until_evidence.append(len(shown))

    answer = await ask(
        world.question,
        world.environment,
        SimulatedModel(world, trial.noise, seed),
        agent=trial.agent,
        parameters=trial.settings,
        on_event=count,
    )
    right = answer.option == spec.option
    return TrialResult(spec.video, right, next(iter(until_evidence), None), answer.ledger.frames, answer.rounds)


RESULTS, TABLES = "simulate.json", "simulate.md"


def simulate(
    sweeps: Sequence[Sweep],
    questions: Sequence[SimulatedQuestion],
    seed: int,
    workers: int,
    on_progress: Callable[[str], object],
) -> Simulation:
    """Run all trials of some sweeps on the same questions; `on_progress` gets a line for each finished sweep."""
    run = partial(run_trial, questions=questions, seed=seed)
    done = []
    with ExitStack() as stack:
        spread: Any = map  # a single worker is this process
        if workers > 1:
            spread = stack.enter_context(ProcessPoolExecutor(workers, mp_context=get_context("spawn"))).map
        for sweep in sweeps:
            done.append(aggregate_sweep(sweep, list(spread(run, sweep.trials))))
            on_progress(f"{sweep.name}: {len(sweep.trials)} trials of {len(questions)} questions")
    return Simulation(describe(questions), seed, Scenery(), Noise(), tuple(done))


def write_simulation(simulation: Simulation, folder: Path) -> Path:
    """Write the figures as `simulate.json` and as tables into a folder; return the path of the tables."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RESULTS).write_bytes(TypeAdapter(Simulation).dump_json(simulation, indent=1))
    (folder / TABLES).write_text(tables(simulation), encoding="utf-8")
    return folder / TABLES


# Question sets for simulations: generated in the likeness of LVBench, or with the times of a real annotation file.
#
# Known of LVBench, and kept to: 103 videos of 4,101 s on average (alphaxiv.org/benchmarks/tsinghua-university/lvbench),
# none under 30 minutes (VCA, section 4.1), some over 100 (EEA, Figure 8); four options. Assumed, for want of a source:
# lengths are log-normal; evidence is one range that lies anywhere with equal chance, log-normal in length, half of all
# under 20 s and one in twenty under 3 s (the one published example in hand, 00:15-00:19, is 4 s long). Questions
# about a whole film have no evidence to be found and are left out; so are questions of an annotation file without
# a time reference or a length.

PER_VIDEO = 5
OPTIONS = 4
MEDIAN_S, SPREAD, SHORTEST_S, LONGEST_S = 3800.0, 0.4, 1800.0, 9000.0
EVIDENCE_S, EVIDENCE_SPREAD, LEAST_S = 20.0, 1.2, 2.0


def make_questions(count: int, seed: int) -> tuple[SimulatedQuestion, ...]:
    """Generate questions about videos that do not exist, `PER_VIDEO` about each."""
    chance = np.random.default_rng([seed, 1])
    made = []
    for number in range(count):
        if number % PER_VIDEO == 0:
            drawn_s = MEDIAN_S * float(np.exp(SPREAD * chance.standard_normal()))
            length_s = min(max(drawn_s, SHORTEST_S), LONGEST_S)
        shown_s = EVIDENCE_S * float(np.exp(EVIDENCE_SPREAD * chance.standard_normal()))
        shown_s = min(max(shown_s, LEAST_S), length_s / 2)
        start_s = float(chance.uniform(0, length_s - shown_s))
        video, option = f"video {number // PER_VIDEO}", int(chance.integers(OPTIONS))
        made.append(SimulatedQuestion(f"q{number}", video, length_s, ((start_s, start_s + shown_s),), option, OPTIONS))
    return tuple(made)


def read_questions(annotations: Path, count: int, seed: int) -> tuple[SimulatedQuestion, ...]:
    """Take up to `count` questions with their lengths and time references from an LVBench file, spread over it.

    Raises `UsageError` if none of them has both.
    """
    from kinodex.jobs.eval.benchmarks import read_benchmark

    items = [
        item
        for item in read_benchmark("lvbench", annotations).items
        if item.duration_s and item.truth.evidence and item.truth.option is not None
    ]
    if not items:
        raise UsageError(
            f"got {annotations}, in which no question has a time reference and a video's length; "
            "give LVBench's video_info.meta.jsonl, or leave it out for made-up questions"
        )
    chosen = np.sort(np.random.default_rng(seed).permutation(len(items))[:count])
    return tuple(
        SimulatedQuestion(
            item.item_id,
            item.video,
            item.duration_s or 0.0,
            item.truth.evidence,
            item.truth.option or 0,
            max(2, len(item.question.options)),
        )
        for item in (items[at] for at in chosen)
    )


def describe(questions: Sequence[SimulatedQuestion]) -> str:
    """Describe the set in one line: numbers of questions and videos, lengths of videos and evidence."""
    lengths_s = {each.video: each.duration_s for each in questions}
    shown_s = [end_s - start_s for each in questions for start_s, end_s in each.evidence]
    return (
        f"{len(questions)} questions about {len(lengths_s)} videos of {np.mean(list(lengths_s.values())) / 60:.0f} "
        f"minutes on average ({min(lengths_s.values()) / 60:.0f} to {max(lengths_s.values()) / 60:.0f}), "
        f"evidence {np.median(shown_s):.0f} s long in the middle case"
    )


# The sweeps: agents under changing assumptions, and choices of EEA under assumptions of many kinds.
#
# A choice is tried in sixteen worlds, every reward model of `REWARDS` with every retrieval of `MATCHES`, so that what
# is
# found is not what one set of assumptions happens to favour.

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
    deviations = "evidence above the median, deviations"
    conditions: list[tuple[str, str, str, Sequence[float], Callable[[Trial, float], Trial]]] = [
        ("reward-noise", "Noise of the rewards", "standard deviation, points", (0, 10, 20, 35, 50), _noise("reward")),
        ("match", "How well queries match", deviations, (1, 2, 3, 4, 6, 9), _scenery("match")),
        ("lookalikes", "Places that only look like evidence", "an hour", (0, 3, 6, 15, 40), _scenery("lookalikes")),
        ("duration", "Length of the videos", "minutes", (5, 30, 60, 100, 180), _last),
        ("evidence", "Length of the evidence", "times as long", (0.25, 1, 4, 16), _lengthen),
        (
            "false-confidence",
            "Answers too early",
            "chance at a decision",
            (0, 0.1, 0.2, 0.4),
            _noise("false_confidence"),
        ),
    ]
    default = EEAParameters()
    choices: list[tuple[str, str, str, Sequence[float | str], float | str, Callable[[Trial, Any], Trial]]] = [
        ("anchor-frames", "Anchors of a round", "B_s of B = 6", range(7), default.anchor_frames, _set("anchor_frames")),
        ("reward-temperature", "Temperature of the softmax behind the entropy", "points", (1, 3, 10, 30, 100),
         REWARD_TEMPERATURE, _set("reward_temperature")),
        ("pooling", "Query score of a segment's anchors", "pooling", ("mean", "sum", "best"), default.pooling,
         _set("pooling")),
        ("anchors", "Form of the anchors", "form", ("here", "paper"), "here", _set_anchors),
        ("halfway", "Calibration of similarities", "deviations that become 0.5", (1.5, 3, 6, 12), SIMILARITY_MIDPOINT,
         _set_midpoint),
    ]  # fmt: skip
    return (*(_conditions(*each) for each in conditions), *(_choice(*each) for each in choices))


def select_sweeps(names: Sequence[str]) -> tuple[Sweep, ...]:
    """Select the sweeps of these names, or all if there are no names; raise `UsageError` for an unknown one."""
    known = {sweep.name: sweep for sweep in all_sweeps()}
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        raise UsageError(f"there is no sweep {unknown!r}; the sweeps are {', '.join(known)}")
    return tuple(known[name] for name in names or known)


def check_agents(also: Sequence[Contender], questions: Sequence[SimulatedQuestion]) -> None:
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


def add_agents(sweeps: Sequence[Sweep], also: Sequence[Contender]) -> list[Sweep]:
    """Add further agents to sweeps as `with_agents` has them; raise `UsageError` if none of them takes any."""
    if also and all(sweep.kind == "choice" for sweep in sweeps):
        conditions = ", ".join(each.name for each in all_sweeps() if each.kind == "conditions")
        raise UsageError(
            f"got --agent {also[0].name} with --sweep {', '.join(each.name for each in sweeps)}, which only tries "
            f"settings of eea; leave --agent out, or name a sweep that compares agents: {conditions}"
        )
    return [with_agents(each, also) for each in sweeps]


def with_agents(sweep: Sweep, also: Sequence[Contender]) -> Sweep:
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


def _noise(name: str) -> Callable[[Trial, float], Trial]:
    return lambda trial, value: replace(trial, noise=replace(trial.noise, **{name: value}))


def _scenery(name: str) -> Callable[[Trial, float], Trial]:
    return lambda trial, value: replace(trial, scenery=replace(trial.scenery, **{name: value}))


def _last(trial: Trial, minutes: float) -> Trial:
    return replace(trial, duration_s=60 * minutes)


def _lengthen(trial: Trial, times: float) -> Trial:
    return replace(trial, longer=times)


def _set_midpoint(trial: Trial, deviations: float) -> Trial:
    return replace(trial, similarity_midpoint=deviations)


def _set_anchors(trial: Trial, form: str) -> Trial:
    return replace(trial, settings={**trial.settings, "form": form})


def _set(name: str) -> Callable[[Trial, Any], Trial]:
    return lambda trial, value: replace(trial, settings={**trial.settings, name: value})


# Aggregate trials: means with errors clustered by video, and differences on the same questions.

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
        "frames_to_evidence": [float(each.frames_to_evidence or FRAMES_AT_MOST) for each in results],
        "accuracy": [float(each.right) for each in results],
        "frames": [float(each.frames) for each in results],
        "rounds": [float(each.rounds) for each in results],
    }


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


# Write `simulate.md`: a table of every sweep, each marked as a simulation.

COLUMNS = {
    "evidence shown, %": ("found", 100.0),
    "frames to evidence": ("frames_to_evidence", 1.0),
    "right, %": ("accuracy", 100.0),
    "frames": ("frames", 1.0),
    "rounds": ("rounds", 1.0),
}
"""Heads of the tables with their figures, and what these are multiplied by."""


def tables(simulation: Simulation) -> str:
    """Sweeps as Markdown: a row a trial, means ± standard error, in brackets the difference on equal questions."""
    parts = [
        "# SIMULATION: search of agents",
        f"No video and no model is behind these figures. {simulation.questions}, seed {simulation.seed}.",
        f"Assumed where a sweep makes no other: {simulation.scenery}, {simulation.noise}",
    ]
    for sweep in simulation.sweeps:
        heads = (sweep.axis, "agent" if sweep.kind == "conditions" else "world", *COLUMNS)
        rows = [f"## SIMULATION: {sweep.title}", f"Differences are from {axis_text(sweep.against)}.", ""]
        rows += [_row(heads), _row(["---"] * len(heads))]
        rows += [_row((axis_text(each.x), each.series, *_cells(each))) for each in (*sweep.points, *sweep.pooled)]
        parts.append("\n".join(rows))
    return "\n\n".join(parts) + "\n"


def axis_text(value: float | str) -> str:
    """Format a value of an axis."""
    return value if isinstance(value, str) else f"{value:g}"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cells(point: Point) -> list[str]:
    cells = []
    for name, factor in COLUMNS.values():
        difference = f" ({_cell(getattr(point.difference, name), factor)})" if point.difference else ""
        cells.append(_cell(getattr(point.means, name), factor) + difference)
    return cells


def _cell(each: Estimate, factor: float) -> str:
    mean = f"{factor * each.mean:.1f}".replace("-", "−")
    return mean if each.error is None else f"{mean} ± {factor * each.error:.1f}"


def main(
    out: Annotated[Path, typer.Option(help="Folder for simulate.json and simulate.md.")],
    sweep: Annotated[
        list[str] | None, typer.Option(help="Only this; may be repeated. A wrong name lists them.")
    ] = None,
    agent: Annotated[
        list[str] | None,
        typer.Option(metavar="AGENT[:NAME=VALUE,..]", help="Also this agent under all conditions; may be repeated."),
    ] = None,
    questions: Annotated[int, typer.Option(min=10, help="Questions in every trial.")] = 200,
    annotations: Annotated[
        Path | None,
        typer.Option(exists=True, help="LVBench's annotation file: its lengths and time references are used."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
) -> None:
    """Simulate the search of EEA, its ablations, VCA and uniform under changing assumptions, and EEA's settings.

    SIMULATION: the model knows the evidence and errs at set rates; no figure says anything about a real model.
    """
    also = parse_contenders(agent or [], controls=False)
    sweeps = add_agents(select_sweeps(sweep or []), also)
    asked = read_questions(annotations, questions, seed) if annotations else make_questions(questions, seed)
    check_agents(also, asked)
    print(write_simulation(simulate(sweeps, asked, seed, workers, say), out))


if __name__ == "__main__":
    typer.run(main)
