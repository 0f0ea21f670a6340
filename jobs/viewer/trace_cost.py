"""Costs of the calls of a trace, so that a reader can add up the answer's ledger."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from agent.trace.trace import Record


@dataclass(frozen=True, slots=True)
class CallCost:
    """Costs under the names of `agent.core.budget.Ledger`; `frames` counts those that were not shown before."""

    calls: int = 0
    cached_calls: int = 0
    invalid_replies: int = 0
    frames: int = 0
    frame_shows: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: float = 0.0
    model_seconds: float = 0.0

    def __add__(self, other: CallCost) -> CallCost:
        return CallCost(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(CallCost)))


def add_up(calls: Sequence[Record], known: Collection[Any]) -> CallCost:
    """Add up the costs of calls, as `trace_view` makes them; `known` are the frames shown before them."""
    shown = [frame for call in calls for frame in call["frames"]]
    spent = [call["usage"] for call in calls]
    return CallCost(
        calls=len(calls),
        cached_calls=sum(bool(call["cached"]) for call in calls),
        invalid_replies=sum(call["invalid"] is not None for call in calls),
        frames=len(set(shown) - set(known)),
        frame_shows=len(shown),
        input_tokens=sum(usage["input_tokens"] for usage in spent),
        output_tokens=sum(usage["output_tokens"] for usage in spent),
        cached_tokens=sum(usage["cached_tokens"] for usage in spent),
        cost=sum(usage["cost"] for usage in spent),
        model_seconds=sum(call["seconds"] for call in calls),
    )


def unexplained(ledger: Mapping[str, Any], spent: CallCost) -> CallCost:
    """Costs of a ledger that its calls do not explain; rounding errors are left out."""
    left = {each.name: ledger.get(each.name, 0) - getattr(spent, each.name) for each in fields(CallCost)}
    return CallCost(**{name: value for name, value in left.items() if abs(value) > 1e-9})
