"""One question on its way: its library, its models, and its bill so far."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kinodex.agent.attempts import Outcome, ask_checked
from kinodex.agent.models.roles import DEFAULT_ROLE, Role
from kinodex.agent.protocol.exchange import Usage
from kinodex.agent.protocol.reply import R
from kinodex.agent.protocol.request import Request
from kinodex.agent.traces.events import Acted
from kinodex.index.library import Library
from kinodex.index.rows import VideoRow
from kinodex.jobs.batch import Purse
from kinodex.jobs.collection.request import CollectionRequest, CollectionSettings
from kinodex.jobs.errors import UsageError
from kinodex.jobs.models import ModelChoice, endpoint_roles, open_local, open_model, run_now

PLAN, LOOK = PAID = ("plan", "look")
"""Actions in a trace whose cost is among their arguments: the plan, and each film."""
WAIT_S, WAITED = 3.0, 30
"""Seconds until the library is tried again that another run holds, and how often a stop is looked for meanwhile."""


@dataclass(slots=True)
class Asker:
    """One question on its way: its library, `videos` those that are asked about, and its bill so far.

    `among` reads these alone. Tables are written by the whole library: what it hid would pass for leftovers.
    """

    library: Library
    among: Library
    videos: Sequence[VideoRow]
    request: CollectionRequest
    settings: CollectionSettings
    usage: Usage = field(default_factory=Usage)
    calls: int = 0
    invalid: int = 0
    began: float = field(default_factory=time.monotonic)
    plan_from: str = "library"
    rounds: int = 0

    def over(self) -> str | None:
        """Return the reason why nothing further may be asked, if there is one."""
        budget, stop = self.request.budget, self.request.stop
        if stop is not None and (reason := stop.over()):
            return reason
        if budget.seconds is not None and time.monotonic() - self.began >= budget.seconds:
            return "seconds"
        return "cost" if self.purse.is_empty else None

    @property
    def purse(self) -> Purse:
        """The money of the question."""
        return Purse(self.request.budget.cost, self.usage.cost)

    def emit(self, round_: int, action: str, words: str, **arguments: Any) -> None:
        """Say what was done."""
        self.rounds = max(self.rounds, round_)
        self.request.on_event(Acted(round_, action, arguments, words=words))

    def waits(self) -> None:
        """Say that another extract is being filled in; raises Ended once nothing further may be asked."""
        self.emit(2, "wait", "waits until another table of films is filled in")
        for _ in range(WAITED):
            if reason := self.over():
                raise Ended(reason)
            time.sleep(WAIT_S / WAITED)

    def ask(self, asked: Request[R], role: Role | None) -> R | None:
        """Return the reply of the model of a role to one request, None if none could be used."""
        outcome = run_now(_ask_once(self.request.choice, role, asked))
        self.usage += outcome.usage
        self.calls += outcome.calls
        self.invalid += outcome.invalid
        return outcome.given


def roles_of(choice: ModelChoice) -> dict[str, Role]:
    """Settings of the models behind endpoints by role; none for a language model in this process.

    Raises UsageError for similarity, and for traces.
    """
    roles = endpoint_roles(choice)
    if not roles and not choice.is_local:
        raise UsageError(
            f"got the model {choice.model} for a question to all films, which a language model has to plan and answer; "
            "name one with --model NAME --base-url URL, or constrained:FOLDER, which sees no frames"
        )
    return roles


def role_of(roles: Mapping[str, Role], name: str) -> Role | None:
    return roles.get(name) or roles.get(DEFAULT_ROLE)


async def _ask_once(choice: ModelChoice, role: Role | None, request: Request[R]) -> Outcome[R]:
    """Open the model of a role, or the one in this process, and ask it."""
    if role is None:
        return await ask_checked(open_local(choice.model), request)
    async with open_model(role) as model:
        return await ask_checked(model, request)


class Ended(Exception):
    """A budget is spent, or somebody stopped it: what came is kept."""
