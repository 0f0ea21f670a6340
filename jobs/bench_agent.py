"""The agents side by side on sketch films whose answers are known: `kinodex bench agent`.

A measurement of search, not of language models: the films are drawn by the project itself, and the built-in model
answers from the same embeddings, unless another one is named. Uniform gets as many frames as the first agent used on
average over the same questions.
"""

from __future__ import annotations

import asyncio
import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agent.answer import Answer
from agent.ask import Task, ask_many, default_parameters
from agent.catalogue import variant
from agent.environment import Environment
from agent.variant import changed
from index.library import Library
from index.spaces import load_space
from jobs.config import IngestConfig
from jobs.evaluation.statistics import clustered_error
from jobs.ingest import run_ingest
from jobs.models import ModelChoice, ModelsFor, chosen_models
from jobs.sample import sample
from jobs.truth import Known, read_known
from pipeline.sources import list_sources


@dataclass(frozen=True, slots=True)
class Contender:
    """An agent with some of its parameters set, under the name of its row."""

    name: str
    agent: str
    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """One agent over all questions: means for a question, and a standard error clustered by film.

    `unanswered` counts the questions that ended without an option, `invalid` those of them that ended so because no
    reply could be used. `frames` are those shown for the question itself, `frames_with_kept` also those that are behind
    captions which an earlier question had made. `seconds` is the time on the clock of one question beside others.
    """

    agent: str
    questions: int
    accuracy: float
    accuracy_error: float
    evidence_hit: float
    unanswered: int
    invalid: int
    frames: float
    frames_with_kept: float
    frame_shows: float
    rounds: float
    calls: float
    tokens: float
    seconds: float
    by_kind: dict[str, float]


@dataclass(frozen=True, slots=True)
class _Bench:
    tasks: Sequence[Known]
    environments: Mapping[str, Environment]
    models: ModelsFor
    together: int


def contenders(agents: Sequence[str], ablations: bool) -> list[Contender]:
    """The agents of these names, each followed by its ablations if they are wanted."""
    rows = []
    for name in agents:
        rows.append(Contender(name, name, {}))
        if ablations:
            rows += [Contender(f"{name}, {what}", name, off) for what, off in variant(name).ablations.items()]
    return rows


def bench_agent(
    directory: Path,
    hours: float,
    limit: int,
    seed: int,
    entered: Sequence[Contender],
    choice: ModelChoice,
    together: int,
    told: Callable[[str], object],
) -> list[Row]:
    """Films, library and questions in `directory` (made if not there), then a row for each contender."""
    tasks, environments = _prepare(directory, hours, limit, seed)

    async def run() -> list[Row]:
        rows: list[Row] = []
        async with chosen_models(choice) as models:
            bench = _Bench(tasks, environments, models, together)
            for contender in entered:
                rows.append(await _row(bench, _equalled(contender, rows)))
                told(f"{rows[-1].agent}: {rows[-1].accuracy:.3f} with {rows[-1].frames:.1f} frames")
                (directory / "bench_agent.json").write_text(json.dumps([asdict(row) for row in rows], indent=2))
        return rows

    return asyncio.run(run())


def table(rows: Sequence[Row]) -> str:
    """The rows as a Markdown table."""
    heads = "agent", "accuracy", "evidence seen", "unanswered", "invalid"
    means = "frames", "frames_with_kept", "frame_shows", "rounds", "calls", "tokens", "seconds"
    lines = [f"| {' | '.join((*heads, *means)).replace('_', ' ')} |", "|---" * (len(heads) + len(means)) + "|"]
    for row in rows:
        counted = f"{row.evidence_hit:.2f} | {row.unanswered} | {row.invalid}"
        figures = " | ".join(f"{getattr(row, name):.{2 if name == 'seconds' else 1}f}" for name in means)
        lines.append(f"| {row.agent} | {row.accuracy:.3f} ± {row.accuracy_error:.3f} | {counted} | {figures} |")
    kinds = sorted({kind for row in rows for kind in row.by_kind})
    lines += ["", f"accuracy by kind of question ({rows[0].questions} questions about sketch films)", ""]
    lines += ["| agent | " + " | ".join(kinds) + " |", "|---" * (len(kinds) + 1) + "|"]
    lines += [f"| {row.agent} | " + " | ".join(f"{row.by_kind[kind]:.2f}" for kind in kinds) + " |" for row in rows]
    return "\n".join(lines)


def _prepare(directory: Path, hours: float, limit: int, seed: int) -> tuple[list[Known], dict[str, Environment]]:
    films = directory / "films"
    if not (films / "questions.jsonl").exists():
        sample(films, hours, seed)
    space = load_space("builtin")
    place = str(directory / "library")
    run_ingest(IngestConfig(space=space.name), list_sources([str(films)]), place)
    library = Library.open(place)
    environments = {Path(row.uri).name: Environment(library, [row], space.embed_text) for row in library.videos()}
    return _spread(read_known(films / "questions.jsonl"), limit), environments


def _spread(tasks: Sequence[Known], limit: int) -> list[Known]:
    """At most `limit` tasks, every film and kind in its share."""
    step = max(1.0, len(tasks) / limit)
    ordered = sorted(tasks, key=lambda task: (task.kind, task.film))
    return [ordered[int(number * step)] for number in range(min(limit, len(tasks)))]


def _equalled(contender: Contender, rows: Sequence[Row]) -> Contender:
    """Uniform with as many frames as the first row's agent needed; any other contender as it is."""
    if contender.agent != "uniform" or not rows:
        return contender
    frames = max(1, round(rows[0].frames))
    return Contender(f"uniform, {frames} frames", "uniform", {"frames": frames})


async def _row(bench: _Bench, contender: Contender) -> Row:
    asked = []
    for task in bench.tasks:
        environment = bench.environments[task.film]
        parameters = changed(default_parameters(contender.agent, environment), contender.settings)
        asked.append(Task(task.question, environment, bench.models(environment), contender.agent, parameters))
    return _summed(contender.name, bench.tasks, await ask_many(asked, bench.together))


def _summed(name: str, tasks: Sequence[Known], answers: Sequence[Answer]) -> Row:
    right = [float(task.right(answer)) for task, answer in zip(tasks, answers, strict=True)]
    hits = [float(task.shown_by(answer.evidence)) for task, answer in zip(tasks, answers, strict=True)]
    bills = [answer.ledger for answer in answers]
    kinds = sorted({task.kind for task in tasks})
    return Row(
        agent=name,
        questions=len(tasks),
        accuracy=statistics.fmean(right),
        accuracy_error=clustered_error(right, [task.film for task in tasks]) or 0.0,
        evidence_hit=statistics.fmean(hits),
        unanswered=sum(answer.option is None for answer in answers),
        invalid=sum(answer.status == "invalid" for answer in answers),
        frames=statistics.fmean(bill.frames for bill in bills),
        frames_with_kept=statistics.fmean(bill.frames_with_kept for bill in bills),
        frame_shows=statistics.fmean(bill.frame_shows for bill in bills),
        rounds=statistics.fmean(answer.rounds for answer in answers),
        calls=statistics.fmean(bill.calls for bill in bills),
        tokens=statistics.fmean(bill.input_tokens + bill.output_tokens for bill in bills),
        seconds=statistics.fmean(bill.seconds for bill in bills),
        by_kind={
            kind: statistics.fmean(r for r, task in zip(right, tasks, strict=True) if task.kind == kind)
            for kind in kinds
        },
    )
