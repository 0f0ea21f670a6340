"""Notices of standing queries, sent to an address over HTTP."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Event
from typing import TYPE_CHECKING, Any

from kinodex.agent.errors import ReplyRefused
from kinodex.redaction import redact_uri

if TYPE_CHECKING:
    from tenacity import RetryCallState

TIMEOUT_S, ATTEMPTS, LONGEST_WAIT_S = 10.0, 5, 30.0
"""Of one try to send a notice; tries in a row, after which it waits for the next rows; seconds between two of them."""
TRY_AGAIN = (408, 425, 429)
CLOSING_S = 5.0
MOST_ANSWER_BYTES = 1 << 20
"""Of what a receiver answers, of which the status counts."""
REFUSED = "refused"


class Sender:
    """Sends notices to an address in a thread of its own, so that rows do not wait for a receiver that is slow."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._pool, self._over = ThreadPoolExecutor(1, "notices"), Event()
        self._sending: dict[str, Future[str | None]] = {}

    def send(self, notices: Sequence[Mapping[str, Any]]) -> None:
        """Begin to send those that are not on their way."""
        for notice in notices:
            if notice["id"] not in self._sending:
                self._sending[notice["id"]] = self._pool.submit(send_notice, self._address, notice, self._over)

    def ended(self) -> tuple[list[str], list[str]]:
        """Return the ids of the notices that need not be sent any more, and what went wrong, in sentences."""
        done, problems = [], []
        for notice_id in [each for each, sending in self._sending.items() if sending.done()]:
            problem = self._sending.pop(notice_id).result()
            problems += [] if problem is None else [problem]
            done += [notice_id] if problem is None or problem.startswith(REFUSED) else []
        return done, problems

    def close(self) -> None:
        """Wait a moment for what is on its way; what is left is sent by the next process."""
        wait(self._sending.values(), CLOSING_S)
        self._over.set()
        self._pool.shutdown()


def send_notice(address: str, notice: Mapping[str, Any], over: Event) -> str | None:
    """POST a notice as JSON, several times where that fails, until it is `over`; returns what went wrong, if anything.

    What begins with REFUSED was answered, and would be answered so again.
    """
    import httpx2
    from tenacity import (
        RetryError,
        Retrying,
        retry_if_exception_type,
        sleep_using_event,
        stop_after_attempt,
        stop_when_event_set,
    )

    attempts = Retrying(
        retry=retry_if_exception_type((httpx2.TransportError, _TryAgain)),
        wait=_wait_s,
        stop=stop_after_attempt(ATTEMPTS) | stop_when_event_set(over),
        sleep=sleep_using_event(over),
    )
    try:
        status = attempts(_post, address, notice)
    except ReplyRefused as error:
        return f"{REFUSED}: notice {notice['id']}: {error}"
    except RetryError as error:
        reason = error.last_attempt.exception()
        said = str(reason) if isinstance(reason, _TryAgain) else type(reason).__name__
        return f"notice {notice['id']} did not reach {redact_uri(address)} ({said}); it is sent again"
    return f"{REFUSED}: {redact_uri(address)} took notice {notice['id']} with {status}" if status >= 300 else None


class _TryAgain(Exception):
    """A reply that may be another one the next time, after the wait that it asks for."""

    def __init__(self, said: str, asked_s: float | None) -> None:
        super().__init__(said)
        self.asked_s = asked_s


def _wait_s(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    asked_s = error.asked_s if isinstance(error, _TryAgain) else None
    return min(max(0.5 * 2.0 ** (state.attempt_number - 1), asked_s or 0.0), LONGEST_WAIT_S)


def _post(address: str, notice: Mapping[str, Any]) -> int:
    from kinodex.agent.models.waits import asked_wait_s
    from kinodex.jobs.blocking_http import BlockingClient

    with BlockingClient(timeout=TIMEOUT_S, most_bytes=MOST_ANSWER_BYTES) as client:
        reply = client.post(address, json=notice, headers={"idempotency-key": notice["id"]})
    status = reply.status_code
    if status >= 500 or status in TRY_AGAIN:
        raise _TryAgain(f"it says {status}", asked_wait_s(status, reply.headers, reply.text, time.time()))
    return int(status)
