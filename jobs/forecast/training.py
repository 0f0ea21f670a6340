"""Forecast of the calls that training a LongVideoAgent master makes to the frozen models: they ground and look."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from agent.core.budget import Budget
from agent.core.protocol import Usage
from agent.environment import Environment
from agent.variants.longvideoagent.rollouts import MASTER_REQUESTS
from jobs.forecast.rehearsal import Rehearsal, Task, run_rehearsal
from jobs.model_choice import ModelChoice, endpoint_roles
from jobs.synthetic.known_answers import KnownQuestion
from jobs.train.settings import MasterSettings

AGENT = "longvideoagent"
REHEARSED = 4
"""Rollouts that are rehearsed."""


def describe_helper_calls(
    settings: MasterSettings,
    known: Sequence[KnownQuestion],
    environments: Mapping[str, Environment],
    choice: ModelChoice,
) -> str:
    """Say in one line how many calls, tokens and money the frozen models are expected to cost in a whole training."""
    some: list[Task] = [(each.question, (each.film,)) for each in known[:: max(1, len(known) // REHEARSED)][:REHEARSED]]
    rehearsal = Rehearsal(AGENT, AGENT, {}, endpoint_roles(choice), Budget())
    bills, _ = asyncio.run(run_rehearsal(rehearsal, some, lambda films: environments[films[0]], restless=False))
    kinds = [(bill, kind) for bill in bills for kind in bill.calls if kind not in MASTER_REQUESTS]
    usage = sum((bill.usage[kind] for bill, kind in kinds), Usage())
    rollouts = settings.steps * settings.questions * settings.rollouts
    share = rollouts / max(1, len(some))
    calls = share * sum(bill.calls[kind] for bill, kind in kinds)
    tokens = share * (usage.input_tokens + usage.output_tokens)
    return (
        f"{settings.steps:,} steps of {settings.questions} questions with {settings.rollouts} rollouts each: "
        f"{rollouts:,} rollouts, about {calls:,.0f} calls of the models that ground and look, {tokens:,.0f} tokens by "
        f"estimate, cost {share * usage.cost:.4g}"
    )
