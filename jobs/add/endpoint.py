"""A model behind an endpoint that is asked from several threads, about as many videos as keep it full."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kinodex.agent.attempts import Outcome, ask_checked
from kinodex.agent.protocol.request import Request
from kinodex.jobs.add.rounds import NotInBatch, Round
from kinodex.jobs.batch import Purse
from kinodex.jobs.library import batched
from kinodex.jobs.model_loop import ModelLoop
from kinodex.jobs.models import open_model

if TYPE_CHECKING:
    from kinodex.agent.models.endpoint import Send
    from kinodex.agent.models.openai_model import OpenAIModel
    from kinodex.agent.models.roles import Role


BATCHES_AHEAD = 2
"""Batches of a video's parts that wait for the endpoint, so that the next is there when it ends the first."""
VIDEOS_AHEAD = 2
"""Long videos worked on together, so that the end of one is filled with another; more if they are short."""
UNSENT: Outcome[Any] = Outcome(None)
"""Of a request that was not sent, since those before it had cost too much."""


def videos_at_once(at_once: int) -> int:
    """Return the largest number of videos in flight together: if each has one segment."""
    return VIDEOS_AHEAD * at_once


def most_weight(at_once: int) -> int:
    """Return the most that the videos in progress together may weigh."""
    return VIDEOS_AHEAD * BATCHES_AHEAD * at_once


def weight_of(parts: int, at_once: int) -> int:
    """Return the weight of a video with this number of `parts`; only a few of them wait for the endpoint at a time."""
    return min(max(parts, BATCHES_AHEAD), BATCHES_AHEAD * at_once)


@contextmanager
def open_served(
    role: Role, send: Send | None = None, stop_at_cost: float | None = None, *, keep: bool = True
) -> Iterator[Served]:
    """Open the model of a role in a loop of its own; requests in flight at the end are cancelled.

    Unless `keep`, the cache of replies is read and not added to.
    """
    with ModelLoop() as loop:
        yield Served(loop, loop.open(open_model(role, send, keep=keep)), Purse(stop_at_cost))


@dataclass(frozen=True, slots=True)
class Served:
    """A model with the loop that it is asked in, and what it may cost."""

    loop: ModelLoop
    model: OpenAIModel
    purse: Purse

    def answer(self, asked: Round) -> list[Outcome[Any]]:
        """Answer a round, until the endpoint has rejected a request and replied to none.

        Raises CostReached if one was not sent for its cost, once those in flight have ended.
        """
        outcomes: list[Outcome[Any]] = []
        waiting: deque[Future[list[Outcome[Any]]]] = deque()
        try:
            for numbers in batched(range(asked.count), self.model.role.at_once):
                waiting.append(self.loop.submit(self._ask_all(asked.make(numbers))))
                while len(waiting) == BATCHES_AHEAD or (waiting and _is_refused(outcomes)):
                    outcomes += waiting.popleft().result()
                if _is_refused(outcomes) or self.purse.is_empty:
                    break
            while waiting:
                outcomes += waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
        if self.purse.is_empty and (len(outcomes) < asked.count or UNSENT in outcomes):
            raise self.purse.reached()
        return outcomes + [Outcome(None)] * (asked.count - len(outcomes))

    async def _ask_all(self, requests: Sequence[Request[Any]]) -> list[Outcome[Any]]:
        """Ask all of some requests at once, but for those that would begin when too much is spent."""
        from kinodex.agent.limits.parallel_calls import gather_all

        return await gather_all([self._ask(request) for request in requests])

    async def _ask(self, request: Request[Any]) -> Outcome[Any]:
        if self.purse.is_empty:
            return UNSENT
        outcome = await ask_checked(self.model, request)
        self.purse.spent += outcome.usage.cost
        return outcome


def _is_refused(outcomes: Iterable[Outcome[Any]]) -> bool:
    refused = (each.refused is not None and not isinstance(each.refused, NotInBatch) for each in outcomes)
    return any(refused) and all(each.reply is None for each in outcomes)
