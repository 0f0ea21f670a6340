"""Counts of a server, read by the parser of Prometheus's own client."""

from __future__ import annotations

import pytest

from kinodex.agent.limits import Ledger
from kinodex.web.questions import Tally, metrics_text
from tests.support.servers.serve_server import Client


def parsed(text: str) -> dict[tuple[str, ...], float]:
    parser = pytest.importorskip("prometheus_client.parser")
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in parser.text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_what_was_counted_is_read_again() -> None:
    tally = Tally()
    tally.count_request("GET", 200, 0.5)
    tally.count_request("GET", 200, 0.25)
    tally.count_request('A"}\n', 404, 0.0)
    tally.count_question("answered", Ledger(frames=3, calls=2, input_tokens=10, output_tokens=5))
    tally.count_question("failed", None)
    values = parsed(metrics_text(tally, 1, 0.125))
    assert values[("kinodex_requests_total", "GET", "200")] == 2
    assert values[("kinodex_requests_total", "other", "404")] == 1
    assert values[("kinodex_request_seconds_total",)] == 0.75
    assert values[("kinodex_questions_total", "answered")] == values[("kinodex_questions_total", "failed")] == 1
    assert values[("kinodex_questions_running",)] == 1 and values[("kinodex_cost_today",)] == 0.125
    spent = [values[(f"kinodex_model_{name}_total",)] for name in ("calls", "frames", "tokens")]
    assert spent == [2, 3, 15]


def test_a_server_counts_its_requests_and_questions(client: Client) -> None:
    client.wait(client.ask("What colour is the bird at sea?"))
    reply = client.get("/metrics")
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    values = parsed(reply.body.decode())
    assert values[("kinodex_questions_total", "answered")] >= 1
    assert values[("kinodex_requests_total", "POST", "201")] >= 1
    assert values[("kinodex_model_frames_total",)] > 0
