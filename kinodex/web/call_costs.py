"""Costs of the calls of a trace, so that a reader can add up the answer's ledger."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from typing import Any

from kinodex.agent.traces.trace import Record


@dataclass(frozen=True, slots=True)
class CallCost:
    """Costs under the names of `agent.limits.ledger.Ledger`; `frames` counts those that were not shown before."""

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
    shown = [frame for call in calls for frame in call["frames"]]
    names = ("input_tokens", "output_tokens", "cached_tokens", "cost")
    return CallCost(
        calls=len(calls),
        cached_calls=sum(bool(call["cached"]) for call in calls),
        invalid_replies=sum(call["invalid"] is not None for call in calls),
        frames=len(set(shown) - set(known)),
        frame_shows=len(shown),
        **{name: sum(call["usage"][name] for call in calls) for name in names},
        model_seconds=sum(call["seconds"] for call in calls),
    )
