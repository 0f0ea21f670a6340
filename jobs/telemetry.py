"""Runs sent as spans to an OTLP collector over HTTP: `--otlp http://127.0.0.1:4318`.

Spans are sent in a thread of their own, some seconds after they ended; a collector that does not answer costs a
warning, never an answer. Headers, such as a key, are taken from OTEL_EXPORTER_OTLP_HEADERS, as OpenTelemetry has it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kinodex.agent.protocol.request_key import plain
from kinodex.agent.traces.events import Acted, Event, Exchanged, Finished, RunStarted
from kinodex.jobs.errors import UsageError
from kinodex.jobs.models import SIMILARITY
from kinodex.jobs.span_attributes import INVALID, chat_attributes, end_attributes, flat, run_attributes, tool_attributes
from kinodex.redaction import redact, redact_uri

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import Span, Tracer


log = logging.getLogger(__name__)


TRACES = "/v1/traces"
SECOND_NS = 1_000_000_000
TIMEOUT_S = 10.0

Watcher = Callable[[Event], None]
Watch = Callable[[str], AbstractContextManager[Watcher]]
"""Opens a watcher of one run's events, given its library's address; the run's span ends with it."""


def unwatched(library: str) -> AbstractContextManager[Watcher]:
    """Open a watcher that sends nothing."""
    return nullcontext(lambda event: None)


@contextmanager
def spans_to(endpoint: str | None) -> Iterator[Watch]:
    """Open the way to a collector; on leaving, all spans are sent. None: nothing is sent anywhere."""
    if endpoint is None:
        yield unwatched
        return
    address = traces_address(endpoint)
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

    class Counted(SpanExporter):
        """Counts the spans that did not arrive."""

        lost = 0

        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            result = sender.export(spans)
            self.lost += len(spans) if result is not SpanExportResult.SUCCESS else 0
            return result

        def shutdown(self) -> None:
            sender.shutdown()

    sender: SpanExporter = OTLPSpanExporter(endpoint=address, timeout=TIMEOUT_S)
    counted = Counted()
    resource = Resource.create({"service.name": "kinodex", "service.version": version("kinodex")})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(counted))
    tracer = provider.get_tracer("kinodex", version("kinodex"))
    try:
        yield lambda library: watch_run(tracer, library)
    finally:
        provider.shutdown()
        if counted.lost:
            log.warning("warning: %s spans did not reach %s", counted.lost, redact_uri(address))


def traces_address(endpoint: str) -> str:
    """Complete the address of a collector by the path of traces, unless it has one; raises UsageError."""
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(
            f"got --otlp {redact_uri(endpoint)}; give a collector's address, such as http://127.0.0.1:4318"
        )
    return endpoint if parts.path.strip("/") else endpoint.rstrip("/") + TRACES


@contextmanager
def watch_run(tracer: Tracer, library: str) -> Iterator[Watcher]:
    """Watch one run's events: a span for the run, one for each call of a model and each step with a tool."""
    run = _Run(tracer, library)
    try:
        yield run
    except BaseException as error:
        run.fail(type(error).__name__, redact(str(error)))
        raise
    finally:
        run.close()


class _Run:
    """The span of a run, and those within it."""

    def __init__(self, tracer: Tracer, library: str) -> None:
        self._tracer, self._library = tracer, library
        self._span: Span | None = None

    def __call__(self, event: Event) -> None:
        from opentelemetry.trace import SpanKind

        if isinstance(event, RunStarted):
            attributes: Any = run_attributes(event, self._library)
            self._span = self._tracer.start_span(
                f"invoke_agent {event.agent}", kind=SpanKind.INTERNAL, attributes=attributes
            )
        elif isinstance(event, Exchanged):
            self._call(event)
        elif isinstance(event, Acted):
            self._within(f"execute_tool {event.action}", tool_attributes(event), SpanKind.INTERNAL, 0.0, event.problem)
        elif self._span is not None and isinstance(event, Finished):
            self._span.set_attributes(dict(end_attributes(event, self._library)))
        elif self._span is not None:
            fields = plain(event)
            assert isinstance(fields, dict)
            self._span.add_event(f"kinodex.{type(event).__name__}", dict(flat(fields)))

    def _call(self, event: Exchanged) -> None:
        from opentelemetry.trace import SpanKind

        kind = SpanKind.INTERNAL if event.model == SIMILARITY else SpanKind.CLIENT
        problem = "" if event.exchange.invalid is None else f"{INVALID}: {event.exchange.invalid}"
        attributes = chat_attributes(event, self._library)
        self._within(f"chat {event.model}", attributes, kind, event.exchange.seconds, problem)

    def _within(self, name: str, attributes: Any, kind: Any, seconds: float, problem: str) -> None:
        """Add a span that ends now and took so long; events come when what they tell of is over."""
        from opentelemetry.trace import Status, StatusCode, set_span_in_context

        if self._span is None:
            return
        now = time.time_ns()
        start = now - round(seconds * SECOND_NS)
        parent = set_span_in_context(self._span)
        span = self._tracer.start_span(name, parent, kind, attributes, start_time=start)
        if problem:
            span.set_status(Status(StatusCode.ERROR, redact(problem)))
        span.end(now)

    def fail(self, kind: str, message: str) -> None:
        """Mark the run as one that an error ended."""
        from opentelemetry.trace import Status, StatusCode

        if self._span is not None:
            self._span.set_attribute("error.type", kind)
            self._span.set_status(Status(StatusCode.ERROR, message))

    def close(self) -> None:
        """End the run's span."""
        if self._span is not None:
            self._span.end()
