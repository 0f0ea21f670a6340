"""What the harness adds to the time that models take: `kinodex bench eval`.

Questions about sketch films are put to agents as `kinodex eval run` puts them, with library, response cache and
records, but to a server that answers everything after a fixed time and is asked so much at once and no more. The ideal
is what the calls alone would take, of which some wait for others (list scheduling).
"""

from __future__ import annotations

import io
import json
import os
import tempfile
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from agent.core.budget import Budget
from index.library import Library
from jobs.bench.fake_llm_server import MODEL, PLAYED, StandIn, stand_in
from jobs.errors import UsageError
from jobs.evaluation.run.make_plan import RunRequest, make_plan
from jobs.evaluation.run.run import RunOptions, run, under_way
from jobs.evaluation.run.solve import RunContext, SampleInput, Solve, SolvedSample
from jobs.evaluation.run.systems import System
from jobs.ingest.config import IngestConfig
from jobs.model_choice import ModelChoice

GOAL = 0.05
"""What the harness may add to the ideal, as a share of it."""


@dataclass(frozen=True, slots=True)
class Load:
    """So many questions, by at most `at_once` calls together, of a server that takes `latency_s` a call."""

    questions: int = 1000
    at_once: int = 32
    latency_s: float = 0.2
    processes: int = 1


@dataclass(frozen=True, slots=True)
class EvalFigures:
    """How one agent's questions went. `wall_s` is from the first question put to the last answer, without `start_s`.

    `start_s` is what opening the library and the models takes, however many questions follow; `added` is the share of
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


def bench_eval(directory: Path, agents: Sequence[str], load: Load, told: Callable[[str], object]) -> list[EvalFigures]:
    """Films, library and questions in `directory` (made if not there), then the figures of each agent."""
    strange = next((agent for agent in agents if agent not in PLAYED), None)
    if strange is not None:
        raise UsageError(f"got the agent {strange!r}; the stand-in for a model plays {', '.join(PLAYED)}")
    films = prepare(directory)
    figures = []
    with tempfile.TemporaryDirectory() as scratch:
        questions = Path(scratch) / "questions.jsonl"
        _write_questions(films / "questions.jsonl", questions, load.questions)
        for agent in agents:
            with stand_in(load.latency_s) as server, _own_cache(Path(scratch) / f"cache-{agent}"):
                figures.append(_measured(agent, directory / "library", questions, server, load))
            told(f"{agent}: {figures[-1].added:+.1%}")
    return figures


def prepare(directory: Path, hours: float = 1.0, seed: int = 0) -> Path:
    """Sketch films with questions, and their library, in a folder; what is there is used. Returns the films' folder."""
    from jobs.ingest.run import run_ingest
    from jobs.synthetic.sample import sample
    from pipeline.sources.discover import list_sources

    films = directory / "films"
    if not (films / "questions.jsonl").exists():
        sample(films, hours, seed)
    if not Library.exists(str(directory / "library")):
        run_ingest(IngestConfig(space="builtin"), list_sources([str(films)]), str(directory / "library"))
    return films


def _write_questions(source: Path, target: Path, count: int) -> None:
    """So many questions, those of a file again and again, numbered: no two ask the same."""
    rows = [json.loads(line) for line in source.read_text(encoding="utf-8").splitlines()]
    with target.open("w", encoding="utf-8") as file:
        for number in range(count):
            row = dict(rows[number % len(rows)])
            row |= {"question_id": str(number), "question": f"{row['question']} ({number})"}
            file.write(json.dumps(row) + "\n")


@contextmanager
def _own_cache(folder: Path) -> Iterator[None]:
    """No reply of another run may come from the cache, nor one of this run stay in it."""
    before = os.environ.get("KINODEX_CACHE")
    os.environ["KINODEX_CACHE"] = str(folder)
    try:
        yield
    finally:
        del os.environ["KINODEX_CACHE"]
        if before is not None:
            os.environ["KINODEX_CACHE"] = before


@dataclass(slots=True)
class _Clock:
    """When whoever asks was there, and when the last answer came, on the clock of `time.perf_counter`."""

    began_s: float = field(default_factory=time.perf_counter)
    opened_s: float = 0.0
    answered_s: float = 0.0


@asynccontextmanager
async def _timed(who_asks: AbstractAsyncContextManager[Solve], clock: _Clock) -> AsyncIterator[Solve]:
    async with who_asks as ask:
        clock.opened_s = time.perf_counter()

        async def timed(contender: System, asked: SampleInput) -> SolvedSample:
            outcome = await ask(contender, asked)
            clock.answered_s = time.perf_counter()
            return outcome

        yield timed


def _measured(agent: str, library: Path, questions: Path, server: StandIn, load: Load) -> EvalFigures:
    choice = ModelChoice(MODEL, server.base_url, at_once=load.at_once)
    setting = RunContext(str(library), choice, Budget())
    plan, items = make_plan(RunRequest("sketch", questions, (System(agent, agent),)), setting)
    clock = _Clock()
    out = questions.parent / f"run-{agent}"
    run(
        plan,
        items,
        _timed(_who_asks(setting, load.processes), clock),
        out,
        Console(file=io.StringIO()),
        RunOptions(under_way(load.at_once)),
    )
    calls = server.calls()
    depths = [calls[item.question.text].in_sequence for item in items]
    count = sum(each.count for each in calls.values())
    ideal_s = ideal([(calls[item.question.text].count, depth) for item, depth in zip(items, depths, strict=True)], load)
    wall_s = clock.answered_s - clock.opened_s
    return EvalFigures(
        agent=agent,
        questions=len(items),
        calls=count,
        calls_in_sequence=sum(depths) / len(depths),
        processes=load.processes,
        start_s=clock.opened_s - clock.began_s,
        ideal_s=ideal_s,
        wall_s=wall_s,
        added=wall_s / ideal_s - 1,
        load=os.getloadavg()[0],
    )


def _who_asks(setting: RunContext, processes: int) -> AbstractAsyncContextManager[Solve]:
    if processes > 1:
        from jobs.evaluation.run.process_pool import process_solver

        return process_solver(setting, processes)
    from jobs.evaluation.run.solve import open_solver

    return open_solver(setting)


def ideal(questions: Sequence[tuple[int, int]], load: Load) -> float:
    """Seconds that questions of so many calls, so many of them in sequence, take if nothing but the calls takes time.

    All calls take the same, so they go in step: the oldest questions first, as many calls at a time as may be asked at
    once. Calls beyond those in sequence are asked beside the first ones.
    """
    waiting = deque([1 + (step < calls - depth) for step in range(depth)] for calls, depth in questions)
    begun: list[list[int]] = []
    steps = 0
    while waiting or begun:
        while waiting and len(begun) < under_way(load.at_once):
            begun.append(waiting.popleft())
        free, steps = load.at_once, steps + 1
        for question in begun:
            asked = min(free, question[0])
            question[0], free = question[0] - asked, free - asked
        begun = [rest for question in begun if (rest := question if question[0] else question[1:])]
    return steps * load.latency_s


def table(figures: Sequence[EvalFigures], load: Load) -> str:
    """The figures as Markdown, for people."""
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
