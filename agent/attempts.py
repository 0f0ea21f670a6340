"""One request to a model: its reply is checked, and if it cannot be used the model is asked once more and told why.

If a reply covers only a part of the request, a second request asks for the rest. Every caller goes through here: an
agent's session, an addition to many videos, a judge.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, Protocol

from kinodex.agent.errors import AllRejected, InvalidReply, ModelRejected, OutOfBudget
from kinodex.agent.protocol.exchange import Exchange, Model, Usage
from kinodex.agent.protocol.reply import R
from kinodex.agent.protocol.request import Request

ATTEMPTS = 2
NO_COST = Usage()
CUT_OFF_SHARE = 1 / 4
"""The part of a long list that a reply has to bring for the rest of the rest to be asked for."""


class Ask(Protocol):
    """Asks once, and checks the reply, as `ask_once` does."""

    async def __call__(self, request: Request[R], /) -> Exchange[R]: ...


@dataclass(frozen=True, slots=True)
class Outcome(Generic[R]):
    """Outcome of asking: the reply, None if none could be used; `refused` is the error if a request was rejected.

    Of `calls` that were sent, or found in the cache, the replies to `invalid` could not be used; `complaint` says what
    was wrong with the last of them.
    """

    reply: R | None
    usage: Usage = NO_COST
    refused: ModelRejected | None = None
    calls: int = 0
    invalid: int = 0
    complaint: str = ""

    @property
    def given(self) -> R | None:
        """The reply, None if none could be used; raises what the request was refused for."""
        if self.reply is None and self.refused is not None:
            raise self.refused
        return self.reply

    def after(self, other: Outcome[Any]) -> Outcome[R]:
        """Return this outcome with what the requests before it cost."""
        calls, invalid = self.calls + other.calls, self.invalid + other.invalid
        return replace(self, usage=other.usage + self.usage, calls=calls, invalid=invalid)


async def ask_checked(model: Model, request: Request[R]) -> Outcome[R]:
    """Ask for a checked reply, twice at most, and for what it leaves out.

    A rejected request is an outcome: it may be for what it holds, and others may succeed. Raises `AllRejected`, and
    `ModelUnreachable` where no reply came.
    """
    return await ask_until_usable(partial(ask_once, model), request)


async def ask_once(model: Model, request: Request[R]) -> Exchange[R]:
    """Ask once; the exchange of a reply that is impossible for this request is invalid."""
    exchange = await model.ask(request)
    try:
        if exchange.reply is not None:
            request.check(exchange.reply)
    except InvalidReply as error:
        return replace(exchange, reply=None, invalid=str(error))
    return exchange


async def ask_until_usable(ask: Ask, request: Request[R]) -> Outcome[R]:
    """Do as `ask_checked` does by a function that asks once.

    While replies bring a good part of the rest, they were cut off rather than negligent, and the rest of the rest is
    asked for too; what came is used if that fails.
    """
    outcome = await _ask_twice(ask, request)
    rest = None if outcome.reply is None else request.missing(outcome.reply)
    if outcome.reply is None or rest is None:
        return outcome
    is_cut_off = len(request.frames) - len(rest.frames) >= CUT_OFF_SHARE * len(request.frames) > 1
    try:
        second = await (ask_until_usable if is_cut_off else _ask_twice)(ask, rest)
    except OutOfBudget:  # the part that is there was paid for
        return outcome
    joined = outcome.reply if second.reply is None else request.join(outcome.reply, second.reply)
    return replace(second, reply=joined).after(outcome)


async def _ask_twice(ask: Ask, request: Request[R]) -> Outcome[R]:
    outcome: Outcome[R] = Outcome(None)
    for _ in range(ATTEMPTS):
        try:
            exchange = await ask(request)
        except AllRejected:
            raise
        except ModelRejected as error:
            refusal: Outcome[R] = Outcome(None, refused=error, calls=1)
            return refusal.after(outcome)
        invalid, complaint = int(exchange.reply is None), exchange.invalid or ""
        outcome = Outcome(exchange.reply, exchange.usage, None, 1, invalid, complaint).after(outcome)
        if exchange.reply is not None:
            break
        attempt = request.attempt + 1
        request = replace(request, attempt=attempt, complaint=exchange.invalid or "", bad_reply=exchange.raw)
    return outcome
