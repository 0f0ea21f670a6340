"""A collector of OpenTelemetry on loopback: it takes traces over HTTP and decodes them by the protocol's own code."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

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
