"""A run: every case solved by every system, each result kept as soon as it is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jobs.evaluation.moments.cases import Cases
from jobs.evaluation.moments.results import Result, ResultFile
from jobs.evaluation.moments.systems import AGENT, Bench, solver
from jobs.model_choice import describe_models


def run_settings(benchmark: str, file: Path, names: Sequence[str], bench: Bench) -> dict[str, Any]:
    """The settings on which results depend: a file of results is for these alone. Systems may be added to it."""
    agents = any(name.startswith(AGENT) for name in names)
    return {
        "benchmark": benchmark,
        "file": file.name,
        "library": bench.library.uri,
        "videos": len(bench.environment.videos),
        "space": bench.environment.space,
        "most": bench.most,
        "min_gap_s": bench.min_gap_s,
        **({"models": describe_models(bench.choice)} if agents else {}),
    }


def run_cases(
    cases: Cases, names: Sequence[str], bench: Bench, results: ResultFile, report: Callable[[int, int], object]
) -> list[Result]:
    """Solve what the file does not hold yet, and return the results of these cases and systems.

    `report` is called with the numbers of results that are there and that there will be.
    """
    todo = [(name, case) for name in names for case in cases.cases]
    bench.environment.source.embed_texts([case.query.text for case in cases.cases])
    solvers = {name: solver(name, bench) for name in names}
    for done, (name, case) in enumerate(todo):
        report(done, len(todo))
        if (name, case.case_id) not in results.results:
            results.add(solvers[name](case))
    return [results.results[name, case.case_id] for name, case in todo]
