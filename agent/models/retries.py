"""Retries of requests to an endpoint: the waits between attempts, Retry-After, and when to give up.

The client's own retries are switched off, because they have no limit on the whole time, log nothing that a user sees,
repeat a request that a spent quota refused, and do not repeat one that got an answer without a completion.
"""

from __future__ import annotations

import email.utils
import logging
import math
import random
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from agent.models.provider_errors import is_transient
from agent.models.role_config import Role

if TYPE_CHECKING:
    from tenacity import RetryCallState

T = TypeVar("T")

FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 30.0
JITTER_S = 0.5

log = logging.getLogger(__name__)


async def with_retries(role: Role, attempt: Callable[[], Awaitable[T]]) -> T:
    """Await `attempt` until it succeeds; raise an error that does not pass, and the last one, unchanged.

    Waits grow exponentially with jitter, and are at least as long as the server's Retry-After. The attempts end after
    the role's `attempts`, or when the next one would begin later than `give_up_after_s`.
    """
    import tenacity

    retrying = tenacity.AsyncRetrying(
        retry=tenacity.retry_if_exception(is_transient),
        wait=_wait_s,
        stop=tenacity.stop_after_attempt(role.attempts) | tenacity.stop_before_delay(role.give_up_after_s),
        before_sleep=lambda state: _warn(role, state),
        reraise=True,
    )
    return await retrying(attempt)


def retry_after_s(header: str | None, now_s: float) -> float | None:
    """Seconds to wait that a Retry-After header gives as a number or a date; None if it gives neither."""
    try:
        wait_s = float(header or "")
    except ValueError:
        date = email.utils.parsedate_tz(header)
        wait_s = math.nan if date is None else email.utils.mktime_tz(date) - now_s
    return max(wait_s, 0.0) if math.isfinite(wait_s) else None


def _wait_s(state: RetryCallState) -> float:
    import openai

    error = state.outcome.exception() if state.outcome else None
    header = error.response.headers.get("retry-after") if isinstance(error, openai.APIStatusError) else None
    requested_s = retry_after_s(header, time.time())
    jitter_s = random.uniform(0.0, JITTER_S)
    if requested_s is not None:
        return requested_s + jitter_s
    return min(FIRST_WAIT_S * 2.0 ** (state.attempt_number - 1), LONGEST_WAIT_S) + jitter_s


def _warn(role: Role, state: RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome else None
    log.warning(
        "%s at %s: %s; attempt %d of %d in %.1f s",
        role.model,
        role.host,
        error,
        state.attempt_number + 1,
        role.attempts,
        state.upcoming_sleep,
    )
