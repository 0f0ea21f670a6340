"""Counts of a server since its start, and the text of them that Prometheus reads at `/metrics`."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field

from kinodex.agent.limits.ledger import Ledger

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
        with self._lock:
            self.requests[method if method in METHODS else "other", status] += 1
            self.request_seconds += seconds

    def count_question(self, status: str, bill: Ledger | None) -> None:
        with self._lock:
            self.ended[status] += 1
            if bill is not None:
                self.spent["calls"] += bill.calls
                self.spent["frames"] += bill.frames
                self.spent["tokens"] += bill.tokens


METRICS_KIND = "text/plain; version=0.0.4; charset=utf-8"


def metrics_text(tally: Tally, running: int, cost_today: float) -> str:
    """Return all counts, with the questions under way and the money of the day, for Prometheus to read."""
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
    from prometheus_client.registry import Collector

    requests = CounterMetricFamily("kinodex_requests", "HTTP requests answered.", labels=["method", "status"])
    for (method, status), count in sorted(tally.requests.items()):
        requests.add_metric([method, str(status)], count)
    about = "Questions that have ended, by the status of the answer."
    ended = CounterMetricFamily("kinodex_questions", about, labels=["status"])
    for ending, count in sorted(tally.ended.items()):
        ended.add_metric([ending], count)
    sums = (
        ("request_seconds", "Seconds until the last byte, summed.", tally.request_seconds),
        ("model_calls", "Calls of models for answers.", tally.spent["calls"]),
        ("model_frames", "Frames that models saw for answers.", tally.spent["frames"]),
        ("model_tokens", "Tokens in and out for answers.", tally.spent["tokens"]),
    )
    cost = "Money of this day (UTC), at the prices of the models."
    families: list[Metric] = [
        requests,
        ended,
        *(CounterMetricFamily(f"kinodex_{name}", text, value=value) for name, text, value in sums),
        GaugeMetricFamily("kinodex_questions_running", "Questions under way.", value=running),
        GaugeMetricFamily("kinodex_cost_today", cost, value=cost_today),
    ]

    class Families(Collector):
        def collect(self) -> list[Metric]:
            return families

    registry = CollectorRegistry()
    registry.register(Families())
    return generate_latest(registry).decode()
