"""When to ask an endpoint again, and when no more: errors that pass, waits between attempts, Retry-After."""

from __future__ import annotations

import email.utils
import logging
import math
import random
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from agent.errors import NoCompletion
from agent.models.role_config import Role

if TYPE_CHECKING:
    from tenacity import RetryCallState

T = TypeVar("T")

TRANSIENT = frozenset({408, 409, 429})
NO_MONEY = "insufficient_quota"
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 30.0
JITTER_S = 0.5

log = logging.getLogger(__name__)


async def with_retries(role: Role, attempt: Callable[[], Awaitable[T]]) -> T:
    """Await `attempt` until it succeeds; errors that do not pass, and the last one, come through as they are.

    Waits grow exponentially with jitter, and are at least what the server's Retry-After asks for. Ends after
    the role's `attempts`, or when the next one would begin later than `give_up_after_s`.
    """
    import tenacity

    retrying = tenacity.AsyncRetrying(
        retry=tenacity.retry_if_exception(passes),
        wait=_wait,
        stop=tenacity.stop_after_attempt(role.attempts) | tenacity.stop_before_delay(role.give_up_after_s),
        before_sleep=lambda state: _tell(role, state),
        reraise=True,
    )
    return await retrying(attempt)


def passes(error: BaseException) -> bool:
    """Whether an error of the client may be gone at the next attempt."""
    import openai

    if isinstance(error, openai.APIStatusError):
        return error.code != NO_MONEY and (error.status_code in TRANSIENT or error.status_code >= 500)
    return isinstance(error, (openai.APIConnectionError, NoCompletion))


def retry_after_s(header: str | None, now_s: float) -> float | None:
    """Seconds that a Retry-After header asks to wait, as a number or a date; None if it says neither."""
    try:
        asked = float(header or "")
    except ValueError:
        date = email.utils.parsedate_tz(header)
        asked = math.nan if date is None else email.utils.mktime_tz(date) - now_s
    return max(asked, 0.0) if math.isfinite(asked) else None


def _wait(state: RetryCallState) -> float:
    import openai

    error = state.outcome.exception() if state.outcome else None
    header = error.response.headers.get("retry-after") if isinstance(error, openai.APIStatusError) else None
    asked = retry_after_s(header, time.time())
    jitter = random.uniform(0.0, JITTER_S)
    if asked is not None:
        return asked + jitter
    return min(FIRST_WAIT_S * 2.0 ** (state.attempt_number - 1), LONGEST_WAIT_S) + jitter


def _tell(role: Role, state: RetryCallState) -> None:
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
