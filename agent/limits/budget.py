"""Budgets: limits of what an answer may cost."""

from __future__ import annotations

from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Annotated, ClassVar, cast

from kinodex.agent.errors import BadSettings
from kinodex.index.flags import Flag

LARGEST = 2**63
"""Of numbers in a trace: other programs read them with this many bits."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of the costs of an answer; None is without limit. `tokens` counts input and output together.

    Rounds are limited by the agent's own parameters too; the lower limit holds.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}
    rounds: Annotated[
        int | None, Flag("Budget: rounds, if the agent allows that many.", "--max-rounds", is_rare=True)
    ] = None
    frames: Annotated[int | None, Flag("Budget: different frames shown.", "--max-frames")] = None
    tokens: Annotated[int | None, Flag("Budget: tokens in and out.", "--max-tokens", is_rare=True)] = None
    seconds: Annotated[
        float | None,
        Flag("Budget: seconds of its own work; waiting for other questions is none.", "--max-seconds", is_rare=True),
    ] = None
    cost: Annotated[float | None, Flag("Budget: money, at the prices of the models.", "--max-cost", is_rare=True)] = (
        None
    )

    def within(self, other: Budget) -> Budget:
        """Return the lower of both limits of each cost.

        >>> Budget(frames=16, rounds=3).within(Budget(frames=8))
        Budget(rounds=3, frames=8, tokens=None, seconds=None, cost=None)
        """
        pairs = {each.name: (getattr(self, each.name), getattr(other, each.name)) for each in fields(self)}
        return Budget(**{name: min((n for n in both if n is not None), default=None) for name, both in pairs.items()})

    def __post_init__(self) -> None:
        for name in ("rounds", "frames", "tokens", "seconds", "cost"):
            limit = getattr(self, name)
            kind, kind_name = (Real, "number") if name in ("seconds", "cost") else (Integral, "whole number")
            if limit is None:
                continue
            if not isinstance(limit, kind) or isinstance(limit, bool) or not 0 < cast(float, limit) < LARGEST:
                raise BadSettings(f"got a budget of {limit!r:.40} {name}; give a {kind_name} above 0, or leave it out")


UNLIMITED = Budget()
