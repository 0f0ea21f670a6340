"""The report of an ingest run on a terminal: a few lines and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.markup import escape

from kinodex.cli.metadata import show_metadata
from kinodex.cli.outcome_lines import OutcomeLines
from kinodex.index.durations import counted, duration
from kinodex.index.library import Library
from kinodex.index.terminal_text import visible
from kinodex.jobs.addresses.moved_files import READING_STAGES
from kinodex.jobs.ingest.reports import STATES, IngestReport, summary
from kinodex.output import console, plain_table, print_json, say


def show_report(report: IngestReport, library: Library, as_json: bool, lines: OutcomeLines | None = None) -> None:
    """Show a report: source by source, up to a number that people read, then in numbers.

    `lines` are those that were printed while the run went on.
    """
    numbers = summary(report)
    if as_json:
        print_json(numbers | {"library": library.uri, "sources": [asdict(outcome) for outcome in report.outcomes]})
        return
    out = console()
    (lines or OutcomeLines(out)).finish(report)
    if report.metadata:
        show_metadata(report.metadata)
    if report.outcomes:
        show_numbers(numbers, out)
    else:
        failures = sum(row.stage in READING_STAGES for row in library.ingest_log.failures())
        before = f"; {failures} failed before, --retry-failed tries them again" if failures else ""
        out.print(f"nothing to do: the library knows all {report.left_out} sources{before}", soft_wrap=True)


def show_round(report: IngestReport, as_json: bool) -> None:
    if as_json:
        sources = [asdict(outcome) for outcome in report.outcomes]
        print_json(summary(report) | {"sources": sources}, indent=None)
        return
    counts = ", ".join(_counts(report.numbers.states))
    classes = Counter(outcome.error_class for outcome in report.outcomes if outcome.error_class)
    why = f" ({', '.join(f'{name} {count}' for name, count in classes.most_common())})" if classes else ""
    stopped = f"; stopped: {visible(report.stopped)}" if report.stopped else ""
    took = f"{counted(report.frames, 'frame')} in {duration(report.seconds)}"
    say(f"{report.started_at:%Y-%m-%d %H:%M:%S} UTC: {counts}{why}; {took}{stopped}")


def _counts(states: Mapping[str, int]) -> list[str]:
    return [f"{states.get(state, 0):,} {state}" for state in STATES if state != "moved" or states.get(state)]


def show_numbers(numbers: Mapping[str, Any], out: Console) -> None:
    seconds = max(numbers["seconds"], 1e-9)
    counts = _counts(numbers["counts"])
    if numbers["left_out"]:
        counts.append(f"{numbers['left_out']:,} left out as known")
    speed = (
        f"{numbers['video_s'] / 3600:.2f} hours in {duration(seconds)} ({numbers['video_s'] / seconds:.0f}x real time)"
    )
    out.print(f"{', '.join(counts)}; {numbers['frames']:,} frames, {speed}", soft_wrap=True)
    if numbers["stopped"]:
        out.print(f"[red]stopped early[/]: {escape(numbers['stopped'])}", soft_wrap=True)
    show_named("failures by class", numbers["failures_by_class"], out)
    show_named("read by PyAV instead, because", numbers["fell_back"], out)
    if numbers["retried"]:
        out.print(f"{numbers['retried']:,} pieces of work were done again because a worker was lost")
    if numbers["seconds_by_stage"]:
        _show_stages(numbers, out)


def _show_stages(numbers: Mapping[str, Any], out: Console) -> None:
    stages = {stage: seconds for stage, seconds in numbers["seconds_by_stage"].items() if stage != "total"}
    total = max(sum(stages.values()), 1e-9)
    table = plain_table("stage", "seconds", "part")
    for stage, seconds in sorted(stages.items(), key=lambda each: -each[1]):
        table.add_row(stage, f"{seconds:,.1f}", f"{seconds / total:.0%}")
    out.print(table)
    busy = ", ".join(f"{name} {part:.0%}" for name, part in numbers["utilisation"].items())
    hands = f"{numbers['workers']} workers, {numbers['embedders']} embedders"
    out.print(f"{hands}; of the time they were there, busy with: {busy or 'not measured'}")


def show_named(title: str, values: Mapping[str, Any], out: Console) -> None:
    text = ", ".join(f"{escape(str(name))} {escape(str(each))}" for name, each in values.items() if each is not None)
    if text:
        out.print(f"{title}: {text}", soft_wrap=True)
