"""Counts of a server since its start, and the text of them that Prometheus reads at `/metrics`.

The text is written here: counters and gauges alone, whose labels are words of this file and numbers
(https://prometheus.io/docs/instrumenting/exposition_formats/).
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from agent.core.budget import Ledger

KIND = "text/plain; version=0.0.4; charset=utf-8"
METHODS = ("GET", "POST", "HEAD", "DELETE", "OPTIONS", "PUT", "PATCH")


@dataclass(eq=False)
class Tally:
    """Counts of all that a server has done; any thread may count."""

    requests: Counter[tuple[str, int]] = field(default_factory=Counter)
    request_seconds: float = 0.0
    ended: Counter[str] = field(default_factory=Counter)
    """Questions that have ended, by the status of their answers, or "failed"."""
    spent: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count_request(self, method: str, status: int, seconds: float) -> None:
        """Count a request that has been answered."""
        with self._lock:
            self.requests[method if method in METHODS else "other", status] += 1
            self.request_seconds += seconds

    def count_question(self, status: str, bill: Ledger | None) -> None:
        """Count a question that has ended, with the bill of its answer, if it has one."""
        with self._lock:
            self.ended[status] += 1
            if bill is not None:
                self.spent["calls"] += bill.calls
                self.spent["frames"] += bill.frames
                self.spent["tokens"] += bill.tokens


def metrics_text(tally: Tally, running: int, cost_today: float) -> str:
    """All counts, with the questions under way and the money of the day."""
    return "".join(_lines(tally, running, cost_today))


def _lines(tally: Tally, running: int, cost_today: float) -> Iterator[str]:
    yield _head("kinodex_requests_total", "counter", "HTTP requests answered.")
    for (method, status), count in sorted(tally.requests.items()):
        yield f'kinodex_requests_total{{method="{method}",status="{status}"}} {count}\n'
    yield _one(
        "kinodex_request_seconds_total", "counter", "Seconds until the last byte, summed.", tally.request_seconds
    )
    yield _one("kinodex_questions_running", "gauge", "Questions under way.", running)
    yield _head("kinodex_questions_total", "counter", "Questions that have ended, by the status of the answer.")
    for ending, count in sorted(tally.ended.items()):
        yield f'kinodex_questions_total{{status="{ending}"}} {count}\n'
    yield _one("kinodex_model_calls_total", "counter", "Calls of models for answers.", tally.spent["calls"])
    yield _one("kinodex_model_frames_total", "counter", "Frames that models saw for answers.", tally.spent["frames"])
    yield _one("kinodex_model_tokens_total", "counter", "Tokens in and out for answers.", tally.spent["tokens"])
    yield _one("kinodex_cost_today", "gauge", "Money of this day (UTC), at the prices of the models.", cost_today)


def _one(name: str, kind: str, text: str, value: float) -> str:
    return f"{_head(name, kind, text)}{name} {value}\n"


def _head(name: str, kind: str, text: str) -> str:
    return f"# HELP {name} {text}\n# TYPE {name} {kind}\n"
