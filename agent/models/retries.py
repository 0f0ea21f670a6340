"""Retries of calls to an endpoint: of what may pass, with waits that grow, or that the server asks for.

The client's own retries are switched off, because they have no limit on the whole time, log nothing that a user sees,
repeat a request that a spent quota refused, and do not repeat one that got an answer without a completion.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from kinodex.agent.models import provider_errors
from kinodex.agent.models.roles import Role
from kinodex.redaction import redact

if TYPE_CHECKING:
    from tenacity import RetryCallState


T = TypeVar("T")
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 30.0
JITTER_S = 0.5
TRIES_IN_TIME = 2
"""Of a request that runs out of time: the second has twice the time, for the same again would end the same way."""
log = logging.getLogger(__name__)


async def with_retries(
    role: Role,
    attempt: Callable[[float], Awaitable[T]],
    is_final: Callable[[BaseException], bool] = lambda error: False,
    on_failure: Callable[[BaseException, float], str] = lambda error, limit_s: "",
) -> T:
    """Await `attempt`, with the seconds that it may take, until it succeeds; raise the last error unchanged.

    `is_final` is true for errors that look as if they would pass and do not. `on_failure` is told of each error that
    is followed by another attempt, and of the time that it had; it returns what to warn of, "" for the usual.

    Waits grow exponentially with jitter, and are at least as long as the server asks (`waits`). The attempts end when
    the next one would begin later than `give_up_after_s`, or after the role's `attempts`, of which those do not count
    to which the server said when to come again. After a time-out there is one more, with twice the time, whenever it
    begins.
    """
    import tenacity

    unasked = timeouts = 0
    too_late = tenacity.stop_before_delay(role.give_up_after_s)

    def limit_s() -> float:
        return role.timeout_s * 2.0**timeouts

    async def timed_attempt() -> T:
        return await attempt(limit_s())

    def is_over(state: RetryCallState) -> bool:
        nonlocal unasked, timeouts
        unasked += _asked_s(state) is None
        if provider_errors.is_timeout(_error(state)):
            timeouts += 1
            return timeouts >= min(TRIES_IN_TIME, role.attempts)
        return unasked >= role.attempts or too_late(state)

    def before_next(state: RetryCallState) -> None:
        error = _error(state)
        assert error is not None
        said = on_failure(error, limit_s())
        if said or not provider_errors.is_timeout(error):
            log.warning("%s at %s %s", role.model, role.host, said or _usual_warning(role, state))

    retrying = tenacity.AsyncRetrying(
        retry=tenacity.retry_if_exception(lambda error: provider_errors.is_transient(error) and not is_final(error)),
        wait=_wait_s,
        stop=is_over,
        before_sleep=before_next,
        reraise=True,
    )
    return await retrying(timed_attempt)


def _error(state: RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome else None


def _asked_s(state: RetryCallState) -> float | None:
    return provider_errors.asked_wait_of(_error(state))


def _wait_s(state: RetryCallState) -> float:
    own_s = min(FIRST_WAIT_S * 2.0 ** (state.attempt_number - 1), LONGEST_WAIT_S)
    return max(own_s, _asked_s(state) or 0.0) + random.uniform(0.0, JITTER_S)


def _usual_warning(role: Role, state: RetryCallState) -> str:
    said, attempt = redact(str(_error(state)), role.secrets), f"attempt {state.attempt_number + 1} of {role.attempts}"
    if _asked_s(state) is not None:
        attempt = "again, as it asks,"
    return f"fails: {said}; {attempt} in {state.upcoming_sleep:.1f} s"
