"""Costs of the frozen models that ground and look while a LongVideoAgent master is trained."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from kinodex.agent.limits.budget import Budget
from kinodex.agent.variants.longvideoagent.requests import MASTER_REQUESTS
from kinodex.agent.videos.environment import Environment
from kinodex.jobs.costs import COSTS, spread
from kinodex.jobs.forecast import DryRun, Task, run_dry
from kinodex.jobs.known_answers import KnownQuestion
from kinodex.jobs.models import ModelChoice, endpoint_roles
from kinodex.jobs.train.settings import MasterSettings

EPISODES = 4
"""Rollouts that are run dry."""


def describe_helper_calls(
    settings: MasterSettings,
    known: Sequence[KnownQuestion],
    environments: Mapping[str, Environment],
    choice: ModelChoice,
) -> str:
    """Say in one line how many calls, tokens and money the frozen models cost at most in a whole training."""
    agent = settings.agent
    dry = DryRun("longvideoagent", "longvideoagent", agent, endpoint_roles(choice), Budget(), settings.rules)
    some: list[Task] = [(each.question, (each.film,)) for each in spread(known, EPISODES)]
    bills = [asyncio.run(run_dry(dry, task, lambda films: environments[films[0]]))[0] for task in some]
    costs = [bill.costs(lambda kind: kind.__name__ not in MASTER_REQUESTS) for bill in bills]
    rollouts = settings.steps * settings.questions * settings.rollouts
    calls, _, tokens_in, tokens_out, cost = (
        rollouts * sum(each[name] for each in costs) / max(1, len(some)) for name in COSTS
    )
    return (
        f"{settings.steps:,} steps of {settings.questions} questions with {settings.rollouts} rollouts each: "
        f"{rollouts:,} rollouts, at most {calls:,.0f} calls of the models that ground and look, "
        f"{tokens_in + tokens_out:,.0f} tokens by estimate, cost {cost:.4g}"
    )
