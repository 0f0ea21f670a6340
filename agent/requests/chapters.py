"""Scenes and chapters as an input of requests: an overview of the videos, which a reply cannot cite."""

from __future__ import annotations

from dataclasses import dataclass, field

from agent.core.question import LATER, Note


@dataclass(frozen=True, kw_only=True)
class WithChapters:
    """A request whose prompt lists scenes or chapters of the videos, if a run reads them (`agent.chapters`)."""

    chapters: tuple[Note, ...] = field(default=(), metadata=LATER)
