"""Costs of a run of an evaluation, before anything is sent: `kinodex eval run --dry-run`.

The mean of a past run that asked alike is the better basis; without one, agents are run dry (`kinodex.jobs.forecast`).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from kinodex.index.library import Library
from kinodex.jobs.costs import COSTS, Forecast, sight_tries
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.contenders import Contender, RunContext
from kinodex.jobs.eval.folder import PLAN, RunPlan, comparable, read_plan, read_results
from kinodex.jobs.eval.run import MAX_FRAMES, RunRequest, check_same, is_asked_again, make_plan
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
    embed_text = library.load_space(context.space, "text").embed_text
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
    tries = {each.name: sight_tries(context.choice, each.find_variant().needs_pictures) for each in plan.contenders}
    return [replace(forecasts[name], tries=count) for name, count in tries.items()]


# Past runs as the basis of a forecast: ledgers of the same agent with the same models on the same library.

LEAST_QUESTIONS = 5
"""Fewer questions than these say too little of a run."""
ALIKE = (
    *("benchmark", "library", "space", "models", "contents", "prices", "budget", "rules", "hide"),
    "keep_captions",
)
"""Fields of a plan on which the costs of a question depend; `rules` with the calls of --verify."""


def past_forecast(out: Path, plan: RunPlan, system: Contender, questions: int) -> Forecast | None:
    """The mean for each question of the newest run that asked alike, in `out` or a folder beside it; None without one.

    Runs of fewer than `LEAST_QUESTIONS` questions, and folders that cannot be read, are left out.
    """
    for folder in _folders(out):
        try:
            past = read_plan(folder)
            same = all(comparable(past, name) == comparable(plan, name) for name in ALIKE)
            unchanged = all(plan.states.get(id_, state) == state for id_, state in past.states.items())
            results = read_results(folder) if same and unchanged and system in past.contenders else ()
        except (UsageError, OSError):  # another version of kinodex wrote it, or it is damaged: a neighbour's folder
            continue
        ledgers = [each.ledger for each in results if each.contender == system.name and not each.error]
        if len(ledgers) >= LEAST_QUESTIONS:
            share = questions / len(ledgers)
            sums = {name: share * sum(getattr(each, name) for each in ledgers) for name in COSTS}
            shown = sum(ledger.frames_with_kept for ledger in ledgers) / len(ledgers)
            return Forecast(system.name, questions, **sums, basis=f"past run {folder.name}", frames_a_question=shown)
    return None


def _folders(out: Path) -> list[Path]:
    """The folder itself, then those beside it, newest first, of those in which a plan was written."""
    times = {}
    for path in out.parent.iterdir() if out.parent.is_dir() else ():
        with suppress(OSError):
            times[path] = (path / PLAN).stat().st_mtime
    return sorted(times, key=lambda path: (path == out, times[path]), reverse=True)
