"""The parts of a run, made of the options of `kinodex eval run`. Imported when the command runs: they are heavy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kinodex.agent.limits import Budget
from kinodex.cli import options
from kinodex.jobs.eval.plan import RunRequest
from kinodex.jobs.eval.run import RunOptions, Workers, run_plan, samples_for
from kinodex.jobs.eval.samples import Subset, parse_subset
from kinodex.jobs.eval.systems import RunContext, System, parse_systems
from kinodex.jobs.models import ModelChoice
from kinodex.jobs.output import console

__all__ = [
    "Budget",
    "RunContext",
    "RunRequest",
    "Workers",
    "choose_models",
    "choose_systems",
    "run",
    "run_limits",
    "subset",
]

BETTER = "`--limit 10` without --dry-run gives a past run, whose figures are better."


def choose_models(
    model: str,
    base_url: str | None,
    models: Path | None,
    prices: tuple[float, float],
    cache: bool,
    sample: int,
    at_once: int,
    anyway: bool,
) -> ModelChoice:
    """Choose the models of a run; replies from the cache cost as much as new ones."""
    return ModelChoice(model, base_url, models, *prices, cache, sample, at_once, charge_cached=True, anyway=anyway)


def choose_systems(
    agents: Sequence[str] | None, ablations: bool, controls: bool, choice: ModelChoice
) -> tuple[System, ...]:
    """Parse the agents of a run; without any it is eea."""
    return parse_systems(agents or ["eea"], ablations=ablations, controls=controls, has_language=choice.has_language)


def subset(only: Sequence[str] | None, ids: Path | None) -> Subset:
    """Parse the part of a benchmark that is asked."""
    return parse_subset(only or [], ids)


def run_limits(
    at_once: int, max_errors: int, max_senseless: int, retry_errors: bool, stop_at_cost: float | None
) -> RunOptions:
    """Make the limits of a run, with as many questions in progress as keep so many requests in flight."""
    return RunOptions(samples_for(at_once), max_errors, retry_errors, stop_at_cost, max_senseless)


def run(
    request: RunRequest, context: RunContext, workers: Workers, limits: RunOptions, out: Path, page: bool, dry_run: bool
) -> None:
    """Run, or only say what that would take."""
    options.check_cost(context.choice, context.budget.cost, limits.stop_at_cost)
    if dry_run:
        from kinodex.jobs.forecast import forecast_run, table

        print(table(forecast_run(request, context, out), advice=BETTER))
        return
    options.announce(context.choice)
    run_plan(request, context, workers, out, console(), limits, page=page)
