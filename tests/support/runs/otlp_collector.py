"""A collector of OpenTelemetry on loopback: it takes traces over HTTP and decodes them by the protocol's own code."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.loopback import serve_handler


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

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            if status == 200 and self.path == "/v1/traces":
                request = ExportTraceServiceRequest.FromString(body)
                collector.headers.append({name.lower(): value for name, value in self.headers.items()})
                for group in request.resource_spans:
                    collector.resources.append(values(group.resource.attributes))
                    collector.spans += [span for scope in group.scope_spans for span in scope.spans]
            self.send_response(status if self.path == "/v1/traces" else 404)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    with serve_handler(Handler) as address:
        collector = Collector(address)
        yield collector
