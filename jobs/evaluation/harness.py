"""One evaluation from beginning to end: plan, solve, report."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from agent.core.answer_rules import USUAL, AnswerRules
from agent.core.budget import Budget
from jobs.evaluation.run.make_plan import RunRequest, make_plan
from jobs.evaluation.run.run import RunOptions, run, samples_for
from jobs.evaluation.run.systems import parse_systems
from jobs.evaluation.run.types import RunContext, Solve
from jobs.evaluation.score.report import EvalReport, report_run
from jobs.model_choice import ModelChoice

if TYPE_CHECKING:
    from rich.console import Console

REQUESTS = 32
"""Requests to a model in flight together, by default."""


@dataclass(frozen=True, slots=True)
class Workers:
    """The processes that solve samples: None is this process alone; with `ray` actors, by default one a core."""

    count: int | None = None
    ray: bool = False
    address: str | None = None

    def open_solver(self, context: RunContext) -> AbstractAsyncContextManager[Solve]:
        """Open a function that solves samples in these processes."""
        if self.ray or self.address is not None:
            from jobs.evaluation.run.ray_pool import ray_solver

            return ray_solver(context, self.count, self.address)
        if self.count is not None and self.count > 1:
            from jobs.evaluation.run.process_pool import process_solver

            return process_solver(context, self.count)
        from jobs.evaluation.run.solve import open_solver

        return open_solver(context)


def run_plan(
    request: RunRequest,
    context: RunContext,
    workers: Workers,
    out: Path,
    console: Console,
    options: RunOptions,
    *,
    page: bool = False,
) -> None:
    """Plan a run and solve its samples, or continue it; all results are in the folder `out`.

    Raises as `make_plan` and `run` do, and `UsageError` for a missing package, also of those that the page needs.
    """
    _check_installed("threadpoolctl", "scipy", *(["matplotlib"] if page else []))
    plan, samples = make_plan(request, context)
    run(plan, samples, workers.open_solver(context), out, console, options)


def evaluate(
    library: str | Path,
    benchmark: str,
    annotations: str | Path,
    out: str | Path,
    *,
    agents: str | Sequence[str] = ("eea",),
    model: str = "builtin",
    base_url: str | None = None,
    budget: Budget | None = None,
    rules: AnswerRules = USUAL,
    anyway: bool = False,
    limit: int | None = None,
    seed: int = 0,
    controls: bool = True,
    ablations: bool = False,
    workers: int = 1,
    page: bool = False,
    verbose: bool = False,
) -> EvalReport:
    """Run agents on a benchmark about a library's videos, and return the report.

    `benchmark` is a name as `kinodex eval check` takes it, such as "lvbench", or "own" for questions of one's own;
    `annotations` is its file or the folder that holds it. `agents` are names, or "NAME:PARAMETER=VALUE,...". With
    `controls` uniform, blind and random take part too. A folder `out` that holds the same run is continued; `page`
    also writes report.html and figures, and `verbose` prints the progress.

    Raises:
        KinodexError: the options make no sense, the library lacks the videos, or the model's endpoint is gone; results
            until then are kept in `out`.
    """
    from jobs.console.output import error_console

    choice = ModelChoice(model, base_url, at_once=REQUESTS, charge_cached=True, anyway=anyway)
    specs = (agents,) if isinstance(agents, str) else agents
    systems = parse_systems(specs, ablations=ablations, controls=controls, has_language=choice.has_language)
    request = RunRequest(benchmark, Path(annotations), systems, limit=limit, seed=seed)
    context = RunContext(str(library), choice, budget or Budget(), rules=rules)
    console = error_console(quiet=not verbose)
    run_plan(request, context, Workers(workers), Path(out), console, RunOptions(samples_for(REQUESTS)), page=page)
    report = report_run(Path(out))
    if page:
        from jobs.evaluation.report.html import write_page

        write_page(report, Path(out))
    return report


def _check_installed(*packages: str) -> None:
    """Raise ModuleNotFoundError for the first missing package: before a run begins, not at its end."""
    for name in packages:
        if find_spec(name) is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
