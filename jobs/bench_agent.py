"""EEA, its ablations and uniform sampling on sketch films whose answers are known: `kinodex bench agent`.

A measurement of search, not of language models: the built-in model answers throughout, from the same embeddings, and
the films are drawn by the project itself. Uniform gets as many frames as EEA used on average over the same questions.
"""

from __future__ import annotations

import asyncio
import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from agent.answer import Answer
from agent.ask import ask
from agent.builtin_model import BuiltinModel
from agent.environment import Environment
from agent.variants.eea import EEAParameters
from agent.variants.uniform import UniformParameters
from index.library import Library
from index.spaces import load_space
from jobs.config import IngestConfig
from jobs.ingest import run_ingest
from jobs.sample import sample
from jobs.truth import Known, read_known
from pipeline.sources import list_sources

ABLATIONS = {
    "eea": {},
    "eea, no semantic-guided expansion": {"semantic_guided_expansion": False},
    "eea, no reward fusion": {"uncertainty_aware_fusion": False},
    "eea, no query update": {"query_update": False},
}


@dataclass(frozen=True, slots=True)
class Row:
    """One agent over all questions: means, and a standard error clustered by film."""

    agent: str
    questions: int
    accuracy: float
    accuracy_error: float
    evidence_hit: float
    unanswered: int
    frames: float
    rounds: float
    calls: float
    seconds: float
    by_kind: dict[str, float]


def bench_agent(directory: Path, hours: float, limit: int, seed: int) -> list[Row]:
    """Films, library and questions in `directory` (made if not there), then a row for each agent."""
    tasks, environments = _prepare(directory, hours, limit, seed)
    rows = [
        _run(
            name,
            tasks,
            environments,
            "eea",
            [replace(_eea(environments[task.film]), **parts) for task in tasks],
        )
        for name, parts in ABLATIONS.items()
    ]
    frames = max(1, round(rows[0].frames))
    rows.append(
        _run(
            f"uniform, {frames} frames",
            tasks,
            environments,
            "uniform",
            [UniformParameters(frames)] * len(tasks),
        )
    )
    (directory / "bench_agent.json").write_text(json.dumps([asdict(row) for row in rows], indent=2))
    return rows


def table(rows: Sequence[Row]) -> str:
    """The rows as a Markdown table."""
    head = "| agent | accuracy | evidence seen | unanswered | frames | rounds | calls | seconds |"
    lines = [head, "|---|---|---|---|---|---|---|---|"]
    lines += [
        f"| {r.agent} | {r.accuracy:.3f} ± {r.accuracy_error:.3f} | {r.evidence_hit:.2f} | {r.unanswered} "
        f"| {r.frames:.1f} | {r.rounds:.1f} | {r.calls:.1f} | {r.seconds:.2f} |"
        for r in rows
    ]
    kinds = sorted({kind for row in rows for kind in row.by_kind})
    lines += [
        "",
        f"accuracy by kind of question ({rows[0].questions} questions; built-in model, sketch films)",
        "",
    ]
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


def _eea(environment: Environment) -> EEAParameters:
    return EEAParameters.for_duration(environment.videos[0].duration_s)


def _run(
    name: str,
    tasks: Sequence[Known],
    environments: dict[str, Environment],
    agent: str,
    parameters: Sequence[Any],
) -> Row:
    async def all_of_them() -> list[Answer]:
        return [
            await ask(
                task.question,
                environments[task.film],
                BuiltinModel(environments[task.film]),
                agent=agent,
                parameters=chosen,
            )
            for task, chosen in zip(tasks, parameters, strict=True)
        ]

    answers = asyncio.run(all_of_them())
    right = [float(task.right(answer)) for task, answer in zip(tasks, answers, strict=True)]
    hits = [float(task.shown_by(answer.evidence)) for task, answer in zip(tasks, answers, strict=True)]
    kinds = sorted({task.kind for task in tasks})
    return Row(
        agent=name,
        questions=len(tasks),
        accuracy=statistics.fmean(right),
        accuracy_error=clustered_error(right, [task.film for task in tasks]),
        evidence_hit=statistics.fmean(hits),
        unanswered=sum(answer.option is None for answer in answers),
        frames=statistics.fmean(answer.ledger.frames for answer in answers),
        rounds=statistics.fmean(answer.rounds for answer in answers),
        calls=statistics.fmean(answer.ledger.calls for answer in answers),
        seconds=statistics.fmean(answer.ledger.seconds for answer in answers),
        by_kind={
            kind: statistics.fmean(r for r, task in zip(right, tasks, strict=True) if task.kind == kind)
            for kind in kinds
        },
    )


def clustered_error(values: Sequence[float], clusters: Sequence[str]) -> float:
    """Standard error of a mean whose values come in clusters (Miller 2024, arXiv 2411.00640, section 2.2)."""
    mean = statistics.fmean(values)
    sums: dict[str, float] = {}
    for value, cluster in zip(values, clusters, strict=True):
        sums[cluster] = sums.get(cluster, 0.0) + value - mean
    return math.sqrt(sum(total * total for total in sums.values())) / len(values)
