"""Runs of a question: who watches them, where their traces go, and what ends them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from kinodex.agent.limits.stop import StopSignal
from kinodex.agent.traces.events import Event
from kinodex.agent.traces.trace import Record, trace_to
from kinodex.jobs.errors import UsageError
from kinodex.jobs.models import ModelsFor


@dataclass(frozen=True, slots=True)
class Run:
    """Watcher, trace and end of a question, beside its request."""

    trace: Path | None = None
    otlp: str | None = None
    """A collector that gets the run as OpenTelemetry spans."""
    on_event: Callable[[Event], None] | None = None
    on_record: Callable[[Record], None] = lambda record: None
    """Gets each record once it is written to the trace."""
    stop: StopSignal | None = None
    models: ModelsFor | None = None
    """Models that are open, in the place of those of the desk."""


RUN = Run()
"""Nobody watches, and no trace is written."""


@contextmanager
def watched(run: Run, uri: str) -> Iterator[Callable[[Event], None]]:
    """Open the trace and the watchers of a run; yields the function that gets every event."""
    with ExitStack() as opened:
        watchers = [] if run.on_event is None else [run.on_event]
        if run.trace is not None:
            try:
                watchers.append(opened.enter_context(trace_to(run.trace, run.on_record)))
            except OSError as error:
                raise unwritable(run.trace, error.strerror) from error
        if run.otlp is not None:
            from kinodex.jobs.telemetry import spans_to

            watch = opened.enter_context(spans_to(run.otlp))
            watchers.append(opened.enter_context(watch(uri)))

        def on_event(event: Event) -> None:
            for watcher in watchers:
                watcher(event)

        yield on_event


def unwritable(trace: Path, problem: str | None) -> UsageError:
    """Return the error for a trace that cannot be written."""
    return UsageError(f"cannot write the trace {trace}: {problem}; give another file")
