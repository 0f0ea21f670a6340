"""Measure the time that the harness adds to the time of models: `python -m tests.bench.evaluation`.

Agents answer questions about sketch films as in `kinodex eval run`, with library, response cache and records, but the
model is a server that answers every request after a fixed time, and takes a fixed number of requests at once. The ideal
is the time of the calls alone, of which some wait for others (list scheduling).
"""

from __future__ import annotations

import io
import json
import os
import tempfile
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from kinodex.agent.limits import Budget
from kinodex.evaluation import show_on
from kinodex.index.library import Library
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.contenders import Contender, ItemInput, RunContext, Solve, SolvedItem
from kinodex.jobs.eval.run import RunOptions, RunRequest, Workers, items_for, make_plan, run
from kinodex.jobs.ingest.config import IngestConfig
from kinodex.jobs.models import ModelChoice
from tests.bench.fake_llm_server import AGENTS, MODEL, FakeServer, open_fake_server
from tests.support.say import say

GOAL = 0.05
"""Time that the harness may add to the ideal, as a share of it."""


@dataclass(frozen=True, slots=True)
class Load:
    """Load of a benchmark: questions, with at most `at_once` calls together, to a server taking `latency_s` a call."""

    questions: int = 1000
    at_once: int = 32
    latency_s: float = 0.2
    processes: int = 1


@dataclass(frozen=True, slots=True)
class EvalFigures:
    """Figures of one agent's run. `wall_s` is from the first question to the last answer, without `start_s`.

    `start_s` is the time to open the library and the models, however many questions follow; `added` is the share of
    the ideal that the harness adds; `load` is the machine's load average at the end.
    """

    agent: str
    questions: int
    calls: int
    calls_in_sequence: float
    processes: int
    start_s: float
    ideal_s: float
    wall_s: float
    added: float
    load: float


def bench_eval(
    directory: Path, agents: Sequence[str], load: Load, report: Callable[[str], object]
) -> list[EvalFigures]:
    """Measure each agent on films, library and questions in `directory`; what is missing there is made first."""
    unknown = next((agent for agent in agents if agent not in AGENTS), None)
    if unknown is not None:
        raise UsageError(f"got the agent {unknown!r}; the stand-in for a model plays {', '.join(AGENTS)}")
    films = prepare(directory)
    figures = []
    with tempfile.TemporaryDirectory() as scratch:
        questions = Path(scratch) / "questions.jsonl"
        _write_questions(films / "questions.jsonl", questions, load.questions)
        for agent in agents:
            with open_fake_server(load.latency_s) as server:
                figures.append(_measure(agent, directory / "library", questions, server, load))
            report(f"{agent}: {figures[-1].added:+.1%}")
    return figures


def prepare(directory: Path, hours: float = 1.0, seed: int = 0) -> Path:
    """Make sketch films with questions, and their library, where missing; returns the folder of the films."""
    from kinodex.jobs.ingest.run import run_ingest
    from kinodex.pipeline.sources import list_sources
    from kinodex.sketch.sample import sample

    films = directory / "films"
    if not (films / "questions.jsonl").exists():
        sample(films, hours, seed)
    if not Library.exists(str(directory / "library")):
        run_ingest(IngestConfig(space="builtin"), list_sources([str(films)]), str(directory / "library"))
    return films


def _write_questions(source: Path, target: Path, count: int) -> None:
    """Write `count` questions, those of a file again and again, numbered: no two ask the same."""
    rows = [json.loads(line) for line in source.read_text(encoding="utf-8").splitlines()]
    with target.open("w", encoding="utf-8") as file:
        for number in range(count):
            row = dict(rows[number % len(rows)])
            row |= {"question_id": str(number), "question": f"{row['question']} ({number})"}
            file.write(json.dumps(row) + "\n")


@dataclass(slots=True)
class _Clock:
    """Times at which the solver was open and the last answer came, on the clock of `time.perf_counter`."""

    began_s: float = field(default_factory=time.perf_counter)
    opened_s: float = 0.0
    answered_s: float = 0.0


@asynccontextmanager
async def _clocked(solver: AbstractAsyncContextManager[Solve], clock: _Clock) -> AsyncIterator[Solve]:
    async with solver as solve:
        clock.opened_s = time.perf_counter()

        async def clocked_solve(system: Contender, sample: ItemInput) -> SolvedItem:
            solved = await solve(system, sample)
            clock.answered_s = time.perf_counter()
            return solved

        yield clocked_solve


def _measure(agent: str, library: Path, questions: Path, server: FakeServer, load: Load) -> EvalFigures:
    """Run the questions through one agent, with a response cache of its own: no reply comes from another run."""
    folder = questions.parent
    choice = ModelChoice(
        MODEL, server.base_url, at_once=load.at_once, cache_path=folder / f"cache-{agent}" / "replies.sqlite"
    )
    context = RunContext(str(library), choice, Budget())
    plan, samples = make_plan(RunRequest("sketch", questions, (Contender(agent, agent),)), context)
    clock = _Clock()
    run(
        plan,
        samples,
        _clocked(Workers(load.processes).open_solver(context), clock),
        folder / f"run-{agent}",
        RunOptions(items_for(load.at_once)),
        show_on(Console(file=io.StringIO()), folder),
    )
    calls = server.calls()
    counted = [calls[sample.question.text] for sample in samples]
    ideal_s = ideal([(each.count, each.in_sequence) for each in counted], load)
    wall_s = clock.answered_s - clock.opened_s
    return EvalFigures(
        agent=agent,
        questions=len(samples),
        calls=sum(each.count for each in calls.values()),
        calls_in_sequence=sum(each.in_sequence for each in counted) / len(counted),
        processes=load.processes,
        start_s=clock.opened_s - clock.began_s,
        ideal_s=ideal_s,
        wall_s=wall_s,
        added=wall_s / ideal_s - 1,
        load=os.getloadavg()[0],
    )


def ideal(questions: Sequence[tuple[int, int]], load: Load) -> float:
    """Compute the seconds for questions, each of (calls, calls in sequence), if nothing but the calls takes time.

    All calls take the same time, so they go in step: the oldest questions first, `at_once` calls at a time. Calls
    beyond those in sequence run beside the first ones.
    """
    waiting = deque([1 + (step < calls - depth) for step in range(depth)] for calls, depth in questions)
    begun: list[list[int]] = []
    steps = 0
    while waiting or begun:
        while waiting and len(begun) < items_for(load.at_once):
            begun.append(waiting.popleft())
        free, steps = load.at_once, steps + 1
        for question in begun:
            calls = min(free, question[0])
            question[0], free = question[0] - calls, free - calls
        begun = [rest for question in begun if (rest := question if question[0] else question[1:])]
    return steps * load.latency_s


def table(figures: Sequence[EvalFigures], load: Load) -> str:
    """Write the figures as Markdown, for people."""
    lines = [
        f"{load.questions:,} questions, {load.at_once} calls at once, {1000 * load.latency_s:.0f} ms a call, "
        f"{len(os.sched_getaffinity(0))} cores",
        "",
        "| agent | calls | in sequence | processes | start s | ideal s | wall s | added | goal | load |",
        "|---" * 10 + "|",
    ]
    for each in figures:
        verdict = "met" if each.added <= GOAL else "missed"
        lines.append(
            f"| {each.agent} | {each.calls:,} | {each.calls_in_sequence:.2f} | {each.processes} | {each.start_s:.1f} "
            f"| {each.ideal_s:.1f} | {each.wall_s:.1f} | {each.added:+.1%} | {GOAL:.0%}: {verdict} | {each.load:.1f} |"
        )
    return "\n".join(lines)


def main(
    directory: Annotated[Path, typer.Argument(help="Folder for films and library; existing ones are used.")],
    agent: Annotated[list[str] | None, typer.Option(help="eea, vca, uniform or blind; may be repeated.")] = None,
    questions: Annotated[int, typer.Option(min=1, help="Number of questions.")] = 1000,
    at_once: Annotated[int, typer.Option(min=1, help="Calls at the same time.")] = 32,
    latency_ms: Annotated[float, typer.Option(min=1.0, help="What a call of the model takes.")] = 200.0,
    workers: Annotated[int, typer.Option(min=1, help="Processes of `kinodex eval`.")] = 1,
) -> None:
    """Measure what `kinodex eval` adds to the time of its models, with a server that answers after a fixed time."""
    load = Load(questions, at_once, latency_ms / 1000, workers)
    print(table(bench_eval(directory, agent or ["eea"], load, say), load))


if __name__ == "__main__":
    typer.run(main)
