"""Forecasts of `kinodex ask` and `kinodex eval run`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from agent.core.answer_rules import AnswerRules
from agent.core.budget import Budget
from agent.core.question import Question
from agent.environment import Environment
from agent.trace.followup import PriorEvidence
from agent.variants.registry import check_fit, find_variant
from index.library import Library
from jobs.benchmarks.samples import Sample
from jobs.evaluation.run.make_plan import RunRequest, check_same, make_plan
from jobs.evaluation.run.run import MAX_FRAMES, is_asked_again
from jobs.evaluation.run.run_folder import PLAN, RunPlan, read_plan, read_results
from jobs.evaluation.run.solve import EnvironmentOf, environments_of
from jobs.evaluation.run.systems import System
from jobs.evaluation.run.types import RunContext
from jobs.forecast.forecast import Forecast, from_ledgers
from jobs.forecast.past_runs import past_ledgers
from jobs.forecast.rehearsal import Rehearsal, Task, rehearse
from jobs.model_choice import ModelChoice, endpoint_roles

ENVIRONMENTS = 16
"""Videos whose vectors stay in memory."""


def forecast_question(
    question: Question,
    environment: Environment,
    choice: ModelChoice,
    agent: str,
    settings: Mapping[str, str],
    budget: Budget,
    rules: AnswerRules,
    prior: PriorEvidence | None = None,
) -> Forecast:
    """Expect the costs of one question. Raises as asking it does, before a model is asked."""
    variant = find_variant(agent)
    unpictured = [video.title for video in environment.videos if not video.has_pictures]
    check_fit(variant, has_language=choice.has_language, unpictured=unpictured)
    roles = endpoint_roles(choice)
    rehearsal = Rehearsal(variant.name, variant, settings, roles, budget, rules, prior, choice.has_language)
    return rehearse(rehearsal, [(question, ())], lambda video_ids: environment)


def forecast_run(request: RunRequest, context: RunContext, out: Path) -> list[Forecast]:
    """Expect the costs of each system of a run, of the questions that the folder holds no result of.

    Raises as `make_plan` does, and `UsageError` if the folder holds another run.
    """
    plan, samples = make_plan(request, context)
    done = set()
    if (out / PLAN).is_file():
        check_same(read_plan(out), plan, out)
        done = {(each.contender, each.item_id) for each in read_results(out) if not is_asked_again(each)}
    environment_of = _open_environments(context)
    forecasts: dict[str, Forecast] = {}
    for system in sorted(plan.contenders, key=lambda each: each.frames_of is not None):
        left = [each for each in samples if (system.name, each.item_id) not in done]
        tasks = _tasks(plan, left)
        ledgers, folder = past_ledgers(out, plan, system)
        if ledgers:
            forecasts[system.name] = from_ledgers(system.name, ledgers, len(left), f"past run {folder}")
            continue
        settings = _settings(system, forecasts)
        rehearsal = Rehearsal(
            system.name,
            system.find_variant(),
            settings,
            endpoint_roles(context.choice),
            context.budget,
            context.rules,
            has_language=context.choice.has_language,
        )
        forecasts[system.name] = rehearse(rehearsal, tasks, environment_of)
    return [forecasts[each.name] for each in plan.contenders]


def _open_environments(context: RunContext) -> EnvironmentOf:
    """As the solver does, but texts are embedded many at a time: the last digits of scores do not matter here."""
    library = Library.open(context.library)
    embed_text = library.load_space(context.space, "text").embed_text
    return environments_of(context, library, embed_text, None, ENVIRONMENTS)


def _tasks(plan: RunPlan, samples: Sequence[Sample]) -> list[Task]:
    return [(each.question, plan.items[each.item_id]) for each in samples]


def _settings(system: System, before: Mapping[str, Forecast]) -> Mapping[str, str | bool | int | float]:
    """The settings of a system; a control that follows another gets as many frames as are expected of that one."""
    if system.frames_of is None:
        return system.settings
    frames = round(before[system.frames_of].frames_a_question)
    return {**system.settings, "frames": min(max(1, frames), MAX_FRAMES)}
