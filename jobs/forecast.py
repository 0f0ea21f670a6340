"""Costs of a question to an agent, before anything is sent: `kinodex ask --dry-run`.

The agent itself is run on the library, and each of its requests is answered by what it assumes (`Variant.assumes`), so
that it goes on to its last round: that is the most that its limits and budgets allow. Of many questions some are run,
spread evenly, and stand for the rest. A caption that an agent keeps in the library is paid once: all questions about a
video together pay for no more than all of its frames.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kinodex.agent.answer_rules import AnswerRules
from kinodex.agent.ask import ask
from kinodex.agent.catalogue import check_fit, find_variant
from kinodex.agent.limits.budget import Budget
from kinodex.agent.limits.ledger import Ledger
from kinodex.agent.models.assumed_model import Assumed, Bill
from kinodex.agent.models.roles import DEFAULT_ROLE, Role
from kinodex.agent.protocol.question import Question
from kinodex.agent.traces.prior_evidence import PriorEvidence
from kinodex.agent.variants.base import Variant
from kinodex.agent.videos.environment import Environment
from kinodex.jobs.costs import COSTS, Forecast, sight_tries, spread
from kinodex.jobs.models import SIMILARITY, ModelChoice, endpoint_roles
from kinodex.jobs.unwritten_library import without_writing

MOST_RUN = 8
"""Questions of a system that are run at most."""

Task = tuple[Question, tuple[str, ...]]
"""A question and the ids of its videos."""


@dataclass(frozen=True, slots=True)
class DryRun:
    """The settings of one system's dry run; `roles` are the endpoints whose prices and names count."""

    system: str
    agent: str | Variant
    settings: Mapping[str, str | bool | int | float]
    roles: Mapping[str, Role]
    budget: Budget
    rules: AnswerRules = field(default_factory=AnswerRules)
    prior: PriorEvidence | None = None


def forecast_question(
    question: Question,
    environment: Environment,
    choice: ModelChoice,
    variant: Variant,
    settings: Mapping[str, Any],
    budget: Budget,
    rules: AnswerRules,
    prior: PriorEvidence | None = None,
) -> Forecast:
    """Forecast the costs of one question. Raises as asking it does, before a model is asked."""
    unpictured = [video.title for video in environment.videos if not video.has_pictures]
    without = "" if environment.has_vectors else environment.source.uri
    check_fit(variant, has_language=choice.has_language, unpictured=unpictured, without_vectors=without)
    dry = DryRun(variant.name, variant, settings, endpoint_roles(choice), budget, rules, prior)
    forecast = forecast_tasks(dry, [(question, ())], lambda video_ids: environment)
    return replace(forecast, tries=sight_tries(choice, variant.asks_for_sight))


def forecast_tasks(
    dry: DryRun, tasks: Sequence[Task], environment_of: Callable[[tuple[str, ...]], Environment]
) -> Forecast:
    """Return the costs of all tasks, from a dry run of some of them."""
    some = spread(tasks, MOST_RUN)
    runs = [asyncio.run(run_dry(dry, task, environment_of)) for task in some]
    sums: dict[str, Any] = dict.fromkeys(COSTS, 0.0)
    for bill, ledger, environment in runs:
        kept = bill.costs((lambda kind: kind.is_kept) if environment.keep_captions else (lambda kind: False))
        times = float(len(tasks))
        if kept["frames"]:  # captions that a question keeps are paid for until each frame of each video has its own
            videos = len({ids for _, ids in tasks})
            times = min(times, videos * max(1.0, environment.index_frames / kept["frames"]))
        own = {name: getattr(ledger, name) - kept[name] for name in COSTS}
        if kept["frames"]:  # a further question may show again what the first one had captioned
            own["frames"] = min(bill.frames.total() - kept["frames"], environment.index_frames)
        for name in COSTS:
            sums[name] += (len(tasks) * own[name] + times * kept[name]) / len(some)
    each = sum(ledger.frames_with_kept for _, ledger, _ in runs) / max(1, len(some))
    return Forecast(dry.system, len(tasks), **sums, frames_a_question=each)


async def run_dry(
    dry: DryRun, task: Task, environment_of: Callable[[tuple[str, ...]], Environment]
) -> tuple[Bill, Ledger, Environment]:
    """Run the agent on a task; gives the bill by kind of request, the ledger, and the environment."""
    question, video_ids = task
    bill, environment = Bill(), without_writing(environment_of(video_ids))
    variant, roles = find_variant(dry.agent), dry.roles or {DEFAULT_ROLE: Role(model=SIMILARITY)}
    answer = await ask(
        question,
        environment,
        {name: Assumed(role, variant.assumes, bill) for name, role in roles.items()},
        agent=variant,
        parameters=dry.settings,
        budget=replace(dry.budget, seconds=None),
        rules=dry.rules,
        seen=dry.prior,
    )
    return bill, answer.ledger, environment
