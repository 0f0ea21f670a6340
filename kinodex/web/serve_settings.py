"""Settings of a server: the models, agent and limits for the questions of its clients."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kinodex.agent.limits.budget import Budget
from kinodex.agent.variants.base import Variant
from kinodex.desk import Desk
from kinodex.index.library import LibraryReader
from kinodex.jobs.models import ModelChoice
from kinodex.jobs.telemetry import Watch, unwatched
from kinodex.jobs.verification.look import Look

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

    def desk(self, library: LibraryReader, look: Look | None = None) -> Desk:
        """Return a desk for clients of this server, in the thread that reads the library."""
        own: dict[str, Any] = {"space": self.space, "detector": self.detector, "agent": self.agent}
        return Desk(library, self.choice, **own, look=look, is_local=False)
