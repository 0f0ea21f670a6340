"""Runs of agents as spans of OpenTelemetry, for the collector that `--otlp` names.

`opentelemetry` is imported here alone (extra `otel`).
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kinodex.agent.protocol.exchange import Usage
from kinodex.agent.protocol.request_key import plain
from kinodex.agent.traces.events import Acted, Event, Exchanged, Finished, RunStarted
from kinodex.jobs.errors import UsageError
from kinodex.redaction import redact, redact_uri

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import Span, Tracer

log = logging.getLogger(__name__)

# Attributes of spans by the GenAI semantic conventions of OpenTelemetry, from the events of a run.
#
# Source: github.com/open-telemetry/semantic-conventions-genai, docs/gen-ai/gen-ai-spans.md and gen-ai-agent-spans.md
# (status: development, 2026). Names that begin with "kinodex." are ours. No prompt and no picture goes along: frames
# are named by library, video and number.

Value = str | int | float | bool | list[str]
Attributes = dict[str, Value]

BUILTIN_PROVIDER, ENDPOINT_PROVIDER = "kinodex", "openai"
"""Provider of the built-in model, and the one whose protocol all endpoints speak, which is what the name stands for."""
MOST_TEXT = 4000
"""Characters of a text."""
INVALID = "invalid_reply"


def run_attributes(event: RunStarted, library: str) -> Attributes:
    """Attributes of the span of a whole run, at its start."""
    question = event.question.text
    for letter, option in event.question.lettered:
        question += f"\n{letter}. {option}"
    attributes: Attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": event.agent,
        "gen_ai.provider.name": BUILTIN_PROVIDER,
        "gen_ai.input.messages": _message("user", question),
        "kinodex.library": redact_uri(library),
        "kinodex.space": event.space,
        "kinodex.videos": [video.video_id for video in event.videos[:100]],
        "kinodex.video_count": len(event.videos),
    }
    if names := sorted(set(event.models.values())):
        attributes["gen_ai.request.model"] = ", ".join(names)
    return attributes


def end_attributes(event: Finished, library: str) -> Attributes:
    """Attributes that a run has at its end: the answer, what it rests on and what it cost."""
    answer, ledger = event.answer, event.answer.ledger
    place = redact_uri(library)
    text = answer.text if answer.letter is None else f"{answer.letter}. {answer.text or ''}"
    return {
        "gen_ai.output.messages": _message(
            "assistant", text or "", "stop" if answer.status == "answered" else "length"
        ),
        "gen_ai.usage.input_tokens": ledger.input_tokens,
        "gen_ai.usage.output_tokens": ledger.output_tokens,
        "kinodex.status": answer.status,
        "kinodex.reason": redact(answer.reason)[:MOST_TEXT],
        "kinodex.rounds": answer.rounds,
        "kinodex.calls": ledger.calls,
        "kinodex.frames_shown": ledger.frames,
        "kinodex.cost": ledger.cost,
        "kinodex.evidence": [f"{place}/{it.video_id}/{it.start_s:.3f}-{it.end_s:.3f}" for it in answer.evidence],
    }


def chat_attributes(event: Exchanged, library: str) -> Attributes:
    """Attributes of a call of a model: an exchange of request and reply."""
    request, exchange = event.request, event.exchange
    is_builtin = event.model.startswith("builtin")
    attributes: Attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": BUILTIN_PROVIDER if is_builtin else ENDPOINT_PROVIDER,
        "gen_ai.request.model": event.model,
        "gen_ai.request.temperature": float(request.temperature),
        "gen_ai.output.type": "text" if request.form == "text" else "json",
        **_usage(exchange.usage),
        "kinodex.round": event.round,
        "kinodex.role": request.role,
        "kinodex.request": type(request).__name__,
        "kinodex.cached": exchange.cached,
        "kinodex.waited_s": exchange.waited_s,
        "kinodex.frames": [f"{redact_uri(library)}/{it.video_id}/{it.frame_no}" for it in request.frames],
    }
    if exchange.reply is not None:
        attributes["gen_ai.output.messages"] = _message("assistant", exchange.reply.model_dump_json(), "stop")
    if exchange.invalid is not None:
        attributes["error.type"] = INVALID
    return attributes


def tool_attributes(event: Acted) -> Attributes:
    """Attributes of a step of an agent with tools."""
    attributes: Attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": event.action,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.arguments": redact(json.dumps(dict(event.arguments), default=str))[:MOST_TEXT],
        "kinodex.round": event.round,
        "kinodex.notes": len(event.notes),
    }
    if event.problem:
        attributes["error.type"] = "tool_error"
    return attributes


def flat(fields: Mapping[str, object]) -> Attributes:
    """Plain values of an event's fields as attributes; lists and objects as their number of entries."""
    values: Attributes = {}
    for name, value in fields.items():
        if isinstance(value, str):
            values[f"kinodex.{name}"] = redact(value)[:MOST_TEXT]
        elif isinstance(value, bool | int | float):
            values[f"kinodex.{name}"] = value
        elif isinstance(value, list | dict):
            values[f"kinodex.{name}.count"] = len(value)
    return values


def _usage(usage: Usage) -> Attributes:
    return {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "kinodex.cost": usage.cost,
    }


def _message(role: str, text: str, finish: str | None = None) -> str:
    """One message as the conventions write them: a JSON list of roles with parts."""
    message: dict[str, object] = {"role": role, "parts": [{"type": "text", "content": redact(text)[:MOST_TEXT]}]}
    if finish is not None:
        message["finish_reason"] = finish
    return json.dumps([message], ensure_ascii=False)


# Send runs as spans to an OTLP collector over HTTP: `--otlp http://127.0.0.1:4318`.
#
# Spans are sent in a thread of their own, some seconds after they ended; a collector that does not answer costs a
# warning, never an answer. Headers, such as a key, are taken from OTEL_EXPORTER_OTLP_HEADERS, as OpenTelemetry has it.

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

        kind = SpanKind.INTERNAL if event.model.startswith("builtin") else SpanKind.CLIENT
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
