"""An evaluation from beginning to end: its plan, and the processes in which its items are solved."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

from kinodex.jobs.errors import check_packages
from kinodex.jobs.eval.plan import RunRequest, make_plan
from kinodex.jobs.eval.results import RunContext, Solve
from kinodex.jobs.eval.run import RunOptions, Show, run, unseen

REQUESTS = 32
"""Requests to a model in flight together, by default."""


@dataclass(frozen=True, slots=True)
class Workers:
    """The processes that solve items: None is this process alone; with `ray` actors, by default one a core."""

    count: int | None = None
    ray: bool = False
    address: str | None = None

    def open_solver(self, context: RunContext) -> AbstractAsyncContextManager[Solve]:
        """Open a function that solves items in these processes."""
        if self.ray or self.address is not None:
            from kinodex.jobs.eval.solvers import ray_solver

            return ray_solver(context, self.count, self.address)
        if self.count is not None and self.count > 1:
            from kinodex.jobs.eval.processes import process_solver

            return process_solver(context, self.count)
        from kinodex.jobs.eval.solve import open_solver

        return open_solver(context)


def run_plan(
    request: RunRequest,
    context: RunContext,
    workers: Workers,
    out: Path,
    options: RunOptions,
    show: Show = unseen,
    *,
    page: bool = False,
) -> None:
    """Plan a run and solve its items, or continue it; raises as `make_plan` and `run` do, or for a missing package."""
    check_packages("scipy", *(["matplotlib"] if page else []))
    plan, items = make_plan(request, context)
    run(plan, items, workers.open_solver(context), out, options, show)
