"""Costs of a run of an evaluation, before anything is sent: `kinodex eval run --dry-run`.

The mean of a past run that asked alike is the better basis; without one, agents are run dry (`kinodex.jobs.forecast`).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kinodex.index.library import Library
from kinodex.jobs.costs import Forecast, sight_tries
from kinodex.jobs.eval.folder import PLAN, read_plan, read_results
from kinodex.jobs.eval.past_runs import past_forecast
from kinodex.jobs.eval.plan import RunRequest, check_same, make_plan
from kinodex.jobs.eval.results import RunContext
from kinodex.jobs.eval.run import MAX_FRAMES, is_asked_again
from kinodex.jobs.eval.solve import environments_of
from kinodex.jobs.forecast import DryRun, Task, forecast_tasks
from kinodex.jobs.models import endpoint_roles

ENVIRONMENTS = 16
"""Videos whose vectors stay in memory."""


def forecast_run(request: RunRequest, context: RunContext, out: Path) -> list[Forecast]:
    """Forecast the costs of each system of a run, of the questions that the folder holds no result of."""
    plan, samples = make_plan(request, context)
    done = set()
    if (out / PLAN).is_file():
        check_same(read_plan(out), plan, out)
        done = {(each.contender, each.item_id) for each in read_results(out) if not is_asked_again(each)}
    library = Library.open(context.library)
    # Many texts at a time, unlike the solver: the last digits of scores do not matter here.
    embed_text = library.text_embedder(context.space)
    environment_of = environments_of(context, library, embed_text, None, ENVIRONMENTS)
    forecasts: dict[str, Forecast] = {}
    for system in sorted(plan.contenders, key=lambda each: each.frames_of is not None):
        left = [each for each in samples if (system.name, each.item_id) not in done]
        tasks: list[Task] = [(each.question, plan.items[each.item_id]) for each in left]
        if past := past_forecast(out, plan, system, len(left)):
            forecasts[system.name] = past
            continue
        roles, settings = endpoint_roles(context.choice), system.settings
        if system.frames_of is not None:  # a control gets as many frames as are expected of the one that it follows
            frames = round(forecasts[system.frames_of].frames_a_question)
            settings = {**settings, "frames": min(max(1, frames), MAX_FRAMES)}
        dry = DryRun(system.name, system.find_variant(), settings, roles, context.budget, context.rules)
        forecasts[system.name] = forecast_tasks(dry, tasks, environment_of)
    tries = {each.name: sight_tries(context.choice, each.find_variant().asks_for_sight) for each in plan.contenders}
    return [replace(forecasts[name], tries=count) for name, count in tries.items()]
