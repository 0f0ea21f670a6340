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
log = logging.getLogger(__name__)


async def with_retries(
    role: Role, attempt: Callable[[], Awaitable[T]], is_final: Callable[[BaseException], bool] = lambda error: False
) -> T:
    """Await `attempt` until it succeeds; raise an error that does not pass, and the last one, unchanged.

    `is_final` is true for errors that look as if they would pass and do not.

    Waits grow exponentially with jitter, and are at least as long as the server asks (`waits`). The attempts end when
    the next one would begin later than `give_up_after_s`, or after the role's `attempts`, of which those do not count
    to which the server said when to come again.
    """
    import tenacity

    unasked = 0

    def is_over(state: RetryCallState) -> bool:
        nonlocal unasked
        unasked += _asked_s(state) is None
        return unasked >= role.attempts or too_late(state)

    too_late = tenacity.stop_before_delay(role.give_up_after_s)
    retrying = tenacity.AsyncRetrying(
        retry=tenacity.retry_if_exception(lambda error: provider_errors.is_transient(error) and not is_final(error)),
        wait=_wait_s,
        stop=is_over,
        before_sleep=lambda state: _warn(role, state),
        reraise=True,
    )
    return await retrying(attempt)


def _asked_s(state: RetryCallState) -> float | None:
    return provider_errors.asked_wait_of(state.outcome.exception() if state.outcome else None)


def _wait_s(state: RetryCallState) -> float:
    own_s = min(FIRST_WAIT_S * 2.0 ** (state.attempt_number - 1), LONGEST_WAIT_S)
    return max(own_s, _asked_s(state) or 0.0) + random.uniform(0.0, JITTER_S)


def _warn(role: Role, state: RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome else None
    said, attempt = redact(str(error), role.secrets), f"attempt {state.attempt_number + 1} of {role.attempts}"
    if _asked_s(state) is not None:
        attempt = "again, as it asks,"
    log.warning("%s at %s: %s; %s in %.1f s", role.model, role.host, said, attempt, state.upcoming_sleep)
