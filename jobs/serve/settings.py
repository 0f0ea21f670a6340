"""Settings of `kinodex serve`: models, agent and limits that no request can exceed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from agent.core.budget import Budget
from agent.variants.base import Variant
from agent.variants.registry import variant_named
from jobs.model_choice import ModelChoice
from jobs.telemetry.otlp import Watch, unwatched

N = TypeVar("N", int, float)
AT_ONCE = 4
"""Questions that are answered at once unless the server's user says otherwise."""


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """The choice of the user who starts the server.

    `budget` is that of each question, which a request can lower. `at_once` limits questions under way, `usd_a_day` the
    money that they may cost in a day of UTC. `traces` is the folder that keeps them; `watch` opens one more
    watcher of each question's events, given the library's address.
    """

    choice: ModelChoice
    agent: Variant
    traces: Path
    budget: Budget
    at_once: int = AT_ONCE
    usd_a_day: float | None = None
    space: str | None = None
    detector: str | None = None
    watch: Watch = unwatched

    def variant(self, name: str) -> Variant:
        """The agent of a name: one of kinodex, or the server's own; never a file, whose code would run here."""
        return self.agent if name == self.agent.name else variant_named(name)

    def lowered(self, budget: Budget, cost: float | None = None) -> Budget:
        """The server's budget, lowered to that of a request and to the money that is left."""
        own = self.budget
        return replace(
            own,
            rounds=_least(own.rounds, budget.rounds),
            frames=_least(own.frames, budget.frames),
            tokens=_least(own.tokens, budget.tokens),
            seconds=_least(own.seconds, budget.seconds),
            cost=_least(own.cost, budget.cost, cost),
        )


def _least(*limits: N | None) -> N | None:
    return min((each for each in limits if each is not None), default=None)
