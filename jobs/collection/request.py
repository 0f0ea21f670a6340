"""All of a question to a collection, and its settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kinodex.agent.limits.budget import Budget
from kinodex.agent.limits.stop import StopSignal
from kinodex.agent.requests.collection import CollectionPlan
from kinodex.agent.traces.events import Event
from kinodex.jobs.models import ModelChoice


@dataclass(frozen=True, slots=True)
class CollectionSettings:
    """Settings of a question to a whole collection."""

    candidates: int = 100
    """Films that are looked at, those that fit the plan's words best; 0: all."""
    frames_a_part: int = 8
    """Frames that the model is shown of a film, a scene, or a moment."""
    lines_a_part: int = 60
    """Lines of it, said, on screen and captions, that the model is given."""
    hits: int = 5
    """Moments of a film that are looked at, where the plan asks for moments."""
    at_once: int = 0
    """Requests under way together; 0: as many as the model's role says."""
    retry_failed: bool = False
    """Ask again about films of which no reply could be used."""


@dataclass(frozen=True, slots=True)
class CollectionRequest:
    """All of a question to a collection; `videos` are names, none: all. `plan` takes the place of the model's own."""

    question: str
    choice: ModelChoice
    videos: Sequence[str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    plan: CollectionPlan | None = None
    budget: Budget = field(default_factory=Budget)
    on_event: Callable[[Event], None] = lambda event: None
    stop: StopSignal | None = None
