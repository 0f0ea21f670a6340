"""One question being answered: what every agent shares, whatever its algorithm.

Requests go through here, so that frames are counted, replies checked and budgets kept in one place. An
invalid reply is counted and asked for once more, with what was wrong; it is never replaced by a guess.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from agent.answer import Answer, Status, answer_text, evidence_of
from agent.environment import Environment
from agent.errors import BadSettings, InvalidReply, OutOfBudget
from agent.events import Decided, Event, Exchanged
from agent.ledger import Account, Budget
from agent.model import Exchange, Model, Models, R, Request, ShownFrame
from agent.question import Question, ScoredSegment
from agent.replies import Answered
from agent.requests.search import Decide

A = TypeVar("A")
B = TypeVar("B")
Emit = Callable[[Event], None]

ATTEMPTS = 2


class Session:
    """The environment, the models and the account of one question; `emit` takes every event."""

    def __init__(
        self, question: Question, environment: Environment, models: Models, budget: Budget, emit: Emit
    ) -> None:
        self.question = question
        self.environment = environment
        self.account = Account(budget, environment.index_frames)
        self.emit = emit
        self._models = models
        self.last_resort: Callable[[], Decide | None] = lambda: None
        """The request for the best answer so far, should a budget end the run; None while nothing was seen."""

    async def ask(self, request: Request[R], *, final: bool = False) -> R | None:
        """A checked reply, asked for twice at most; None if both were invalid.

        Raises `OutOfBudget` if the budget does not allow the call; all but a `final` one leave something
        for that.
        """
        for attempt in range(ATTEMPTS):
            exchange = await self._exchange(request, final)
            if exchange.reply is not None:
                return exchange.reply
            request = replace(request, attempt=attempt + 1, complaint=exchange.invalid or "", bad_reply=exchange.raw)
        return None

    async def decide(self, candidates: Sequence[ScoredSegment], frames: tuple[ShownFrame, ...]) -> int | Answer:
        """The number of the segment to explore next, or the answer.

        An answer is demanded if nothing is left to explore or the budget would not last for another round
        like this.
        """
        over = self.account.no_further_round()
        forced = over is not None or not any(candidate.explorable for candidate in candidates)
        request = Decide(
            question=self.question,
            videos=self.environment.videos,
            candidates=tuple(candidates),
            frames=frames,
            must_answer=forced,
        )
        decision = await self.ask(request, final=forced)
        if decision is None:
            return self.answer(None, frames, "invalid", "no valid decision in two attempts")
        self.emit(Decided(self.account.rounds, decision.action, decision.segment, forced))
        if decision.action == "explore" and decision.segment is not None:
            return decision.segment
        if decision.action == "insufficient_evidence":
            return self.answer(None, frames, "insufficient_evidence", over or "")
        return self.answer(decision, frames, "budget_exhausted" if over else "answered", over or "")

    async def best_so_far(self, reason: str) -> Answer:
        """End the run because a budget is spent: one last forced decision if that is still affordable."""
        request = self.last_resort()
        if request is None or self.account.spent_out():
            return self.answer(None, (), "budget_exhausted", reason)
        decision = await self.ask(request, final=True)
        status: Status = "invalid" if decision is None else "budget_exhausted"
        if decision is not None:
            self.emit(Decided(self.account.rounds, decision.action, None, forced=True))
            if decision.action == "insufficient_evidence":
                return self.answer(None, request.frames, "insufficient_evidence", reason)
        return self.answer(decision, request.frames, status, reason)

    def answer(self, reply: Answered | None, shown: Sequence[ShownFrame], status: Status, reason: str = "") -> Answer:
        """The answer that a checked reply gives, with evidence from the frames it was shown and the final bill."""
        text, option = (None, None) if reply is None else answer_text(self.question, reply)
        evidence = () if reply is None else evidence_of(self.environment, shown, reply.evidence)
        return Answer(status, text, option, evidence, self.account.rounds, self.account.ledger, reason)

    async def _exchange(self, request: Request[R], final: bool) -> Exchange[R]:
        over = self.account.spent_out() if final else self.account.needed_for_last_word()
        if over:
            raise OutOfBudget(over)
        model = self._model(request.role)
        self.account.begin_call(request.frames)
        try:
            exchange = _checked(request, await self._in_time(model.ask(request)))
        finally:
            self.account.end_call()
        self.account.charge(
            exchange.usage, cached=exchange.cached, invalid=exchange.reply is None, seconds=exchange.seconds
        )
        self.emit(Exchanged(self.account.rounds, model.name, request, exchange))
        return exchange

    async def _in_time(self, call: Awaitable[A]) -> A:
        limit = asyncio.timeout(self.account.seconds_left)
        try:
            async with limit:
                return await call
        except TimeoutError as error:
            if limit.expired():
                raise OutOfBudget("seconds") from error
            raise

    def _model(self, role: str) -> Model:
        if not isinstance(self._models, Mapping):
            return self._models
        model = self._models.get(role) or self._models.get("default")
        if model is None:
            raise BadSettings(f"no model for the role {role!r}, only for {sorted(self._models)}; name a default one")
        return model


async def together(first: Awaitable[A], second: Awaitable[B]) -> tuple[A, B]:
    """Both results at once; if one fails, the other is cancelled before the error goes on."""
    tasks = asyncio.ensure_future(first), asyncio.ensure_future(second)
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def _checked(request: Request[R], exchange: Exchange[R]) -> Exchange[R]:
    if exchange.reply is None:
        return exchange
    try:
        request.check(exchange.reply)
    except InvalidReply as error:
        return replace(exchange, reply=None, invalid=str(error))
    return exchange
