"""Runs of agents as spans of OpenTelemetry."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from kinodex.agent.ask import ask
from kinodex.agent.traces.events import Event
from kinodex.agent.traces.trace import trace_to
from kinodex.jobs.errors import UsageError
from kinodex.jobs.models import ModelChoice, chosen_models
from kinodex.jobs.open import open_environment
from kinodex.jobs.telemetry import Watch, spans_to, traces_address
from tests.support.command import Kinodex, bad
from tests.support.loopback import Answer, Call, serve


@dataclass
class Collector:
    """Spans that arrived, and the headers that came with them."""

    url: str
    spans: list[Any] = field(default_factory=list)
    resources: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def named(self, beginning: str) -> list[Any]:
        return [span for span in self.spans if span.name.startswith(beginning)]


def values(attributes: Any) -> dict[str, Any]:
    """Attributes of a span or a resource as plain values."""
    return {each.key: _value(each.value) for each in attributes}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    return getattr(value, kind)


@contextmanager
def collecting(status: int = 200) -> Iterator[Collector]:
    """Run a collector that answers with this status."""

    def respond(call: Call) -> Answer:
        is_here = call.path == "/v1/traces"
        if status == 200 and is_here:
            is_packed = call.headers.get("content-encoding") == "gzip"
            request = ExportTraceServiceRequest.FromString(gzip.decompress(call.body) if is_packed else call.body)
            collector.headers.append(dict(call.headers))
            for group in request.resource_spans:
                collector.resources.append(values(group.resource.attributes))
                collector.spans += [span for scope in group.scope_spans for span in scope.spans]
        return Answer(status if is_here else 404, b"", {"Content-Type": "application/x-protobuf"})

    with serve(respond) as address:
        collector = Collector(address)
        yield collector


SECRET = "sk-" + "a1B2c3D4" * 4
QUESTION = f"What is the code word? My key is {SECRET}"


@dataclass(frozen=True)
class Sent:
    """One run: the collector that got it, and the records of its trace file."""

    collector: Collector
    records: list[dict[str, Any]]
    library: str


@pytest.fixture(scope="module")
def sent(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Sent:
    """A question that was answered, sent with a header that grants access to the collector."""
    trace = tmp_path_factory.mktemp("trace") / "trace.jsonl"
    environment = open_environment(str(library), ["film-01"])

    async def answer(watch: Watch) -> None:
        async with chosen_models(ModelChoice()) as models:
            with trace_to(trace) as write, watch(str(library)) as send:

                def on_event(event: Event) -> None:
                    write(event)
                    send(event)

                await ask(QUESTION, environment, models(environment), agent="eea", on_event=on_event)

    with pytest.MonkeyPatch.context() as patch, collecting() as collector:
        patch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20of-the-collector")
        with spans_to(collector.url) as watch:
            asyncio.run(answer(watch))
    return Sent(collector, [json.loads(line) for line in trace.read_text().splitlines()], str(library))


def test_a_run_is_one_trace_by_the_genai_conventions(sent: Sent) -> None:
    collector, library = sent.collector, sent.library
    (root,) = collector.named("invoke_agent eea")
    calls = collector.named("chat similarity")
    assert {span.trace_id for span in collector.spans} == {root.trace_id}
    assert all(span.parent_span_id == root.span_id for span in calls)
    assert root.start_time_unix_nano <= min(span.start_time_unix_nano for span in calls)
    assert root.end_time_unix_nano >= max(span.end_time_unix_nano for span in calls)
    assert collector.resources[0]["service.name"] == "kinodex"
    about = values(root.attributes)
    assert (about["gen_ai.operation.name"], about["gen_ai.agent.name"]) == ("invoke_agent", "eea")
    assert about["kinodex.status"] in ("answered", "evidence_only", "budget_exhausted")
    message = json.loads(about["gen_ai.input.messages"])[0]
    assert (message["role"], message["parts"][0]["content"]) == ("user", "What is the code word? My key is ***")
    assert all(each.startswith(f"{library}/") for each in about["kinodex.evidence"])


def test_calls_are_those_of_the_trace_file(sent: Sent) -> None:
    collector, library = sent.collector, sent.library
    records = [each for each in sent.records if each["event"] == "Exchanged"]
    calls = sorted((values(span.attributes) for span in collector.named("chat")), key=lambda it: it["kinodex.round"])
    assert len(calls) == len(records)
    for call in calls:
        assert call["gen_ai.operation.name"] == "chat"
        assert {"gen_ai.request.model", "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"} <= call.keys()
    shown = {name for call in calls for name in call["kinodex.frames"]}
    of_file = {
        f"{library}/{frame['video_id']}/{frame['frame_no']}"
        for record in records
        for frame in record["inputs"].get("frames", [])
    }
    assert shown == of_file != set()


def test_no_picture_no_prompt_and_no_secret_is_sent(sent: Sent) -> None:
    collector = sent.collector
    content = b"".join(span.SerializeToString() for span in collector.spans)
    assert SECRET.encode() not in content
    assert b"\xff\xd8\xff" not in content and b"data:image" not in content
    assert len(content) < 3000 * len(collector.spans)
    assert collector.headers[0]["authorization"] == "Bearer of-the-collector"


def test_a_collector_that_fails_costs_a_warning_and_no_answer(kinodex: Kinodex, library: Path) -> None:
    with collecting(status=400) as collector:
        ran = kinodex("ask", library, "What is the code word?", "--video", "film-01", "--otlp", collector.url)
    assert ran.code == 0
    assert "spans did not reach" in ran.err


def test_an_address_that_is_none_is_refused(kinodex: Kinodex, library: Path) -> None:
    assert traces_address("http://h:4318/") == "http://h:4318/v1/traces"
    assert traces_address("https://h/api/otel/v1/traces") == "https://h/api/otel/v1/traces"
    with pytest.raises(UsageError, match="give a collector's address"):
        traces_address("localhost:4318")
    bad(kinodex, "ask", library, "What?", "--otlp", "collector", code=2, says="give a collector's address")
