"""Report of an ingest run on a terminal: a few lines and tables."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.markup import escape

from index.library import Library
from index.redact import redact_values
from index.rows import RunRow
from jobs.console.escape import visible
from jobs.console.outcome_lines import OutcomeLines
from jobs.console.output import console, counted, duration, plain_table, print_json
from jobs.errors import UsageError
from jobs.ingest.outcomes import STATES, IngestReport, summary

MOST_RUNS = 20


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
    if report.outcomes:
        _show_numbers(numbers, out)
    else:
        failures = library.info().failures
        before = f"; {failures} failed before, --retry-failed tries them again" if failures else ""
        out.print(f"nothing to do: the library knows all {report.left_out} sources{before}", soft_wrap=True)


def show_round(report: IngestReport, as_json: bool) -> None:
    """Show one round of `kinodex ingest --watch` in one line, at once, also where the output is a pipe."""
    if as_json:
        sources = [asdict(outcome) for outcome in report.outcomes]
        numbers = redact_values(summary(report) | {"sources": sources})
        print(json.dumps(numbers, default=str, ensure_ascii=False), flush=True)
        return
    counts = ", ".join(f"{report.count(state):,} {state}" for state in STATES)
    classes = Counter(outcome.error_class for outcome in report.outcomes if outcome.error_class)
    why = f" ({', '.join(f'{name} {count}' for name, count in classes.most_common())})" if classes else ""
    stopped = f"; stopped: {visible(report.stopped)}" if report.stopped else ""
    took = f"{counted(report.frames, 'frame')} in {duration(report.seconds)}"
    print(f"{report.started_at:%Y-%m-%d %H:%M:%S} UTC: {counts}{why}; {took}{stopped}", flush=True)


def show_runs(library: Library, run_id: str | None, as_json: bool) -> None:
    """Show one run of a library, or all of them and the latest in numbers.

    Raises:
        UsageError: no run has that id, or more than one begins with it.
    """
    runs = library.ingest_log.runs()
    if run_id is not None:
        run = _run(runs, run_id, library)
        if as_json:
            print_json(asdict(run))
        else:
            _show_run(run, console())
    elif as_json:
        print_json([asdict(run) for run in runs])
    else:
        _show_list(runs, console())


def _run(runs: Sequence[RunRow], run_id: str, library: Library) -> RunRow:
    named = [run for run in runs if run.run_id.startswith(run_id)]
    if len(named) != 1:
        known = ", ".join(run.run_id for run in runs[:5]) or "none"
        many = "begins the ids of several runs" if named else "is no run"
        raise UsageError(f"got --run {run_id}, which {many} of {library.uri}; its latest are: {known}")
    return named[0]


def _show_list(runs: Sequence[RunRow], out: Console) -> None:
    if not runs:
        out.print("no run has left a report yet")
        return
    table = plain_table("run", "what", "state", "began", "took")
    for run in runs[:MOST_RUNS]:
        took = duration((run.ended_at - run.started_at).total_seconds()) if run.ended_at else ""
        table.add_row(run.run_id, run.kind, run.state, f"{run.started_at:%Y-%m-%d %H:%M} UTC", took)
    out.print(table)
    if len(runs) > MOST_RUNS:
        out.print(f"and {len(runs) - MOST_RUNS:,} earlier ones")
    out.print()
    _show_run(runs[0], out)


def _show_run(run: RunRow, out: Console) -> None:
    out.print(f"[bold]{run.run_id}[/] {run.kind}, {run.state}, began {run.started_at:%Y-%m-%d %H:%M:%S} UTC")
    if "counts" in run.report:
        _show_numbers(run.report, out)
        _show_named("settings", run.report.get("settings", {}), out)
        _show_named("versions", run.report.get("versions", {}), out)
    else:
        _show_named("report", {name: each for name, each in run.report.items() if name != "arithmetic"}, out)
    if arithmetic := run.report.get("arithmetic"):
        out.print(f"vectors made in {escape(arithmetic)}", soft_wrap=True)


def _show_numbers(numbers: Mapping[str, Any], out: Console) -> None:
    """Show a report's numbers: sources by outcome, failures by class, where the time went."""
    seconds = max(numbers["seconds"], 1e-9)
    counts = [f"{numbers['counts'][state]:,} {state}" for state in STATES]
    if numbers["left_out"]:
        counts.append(f"{numbers['left_out']:,} left out as known")
    speed = (
        f"{numbers['video_s'] / 3600:.2f} hours in {duration(seconds)} ({numbers['video_s'] / seconds:.0f}x real time)"
    )
    out.print(f"{', '.join(counts)}; {numbers['frames']:,} frames, {speed}", soft_wrap=True)
    if numbers["stopped"]:
        out.print(f"[red]stopped early[/]: {escape(numbers['stopped'])}", soft_wrap=True)
    _show_named("failures by class", numbers["failures_by_class"], out)
    _show_named("read by PyAV instead, because", numbers["fell_back"], out)
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


def _show_named(title: str, values: Mapping[str, Any], out: Console) -> None:
    text = ", ".join(f"{escape(str(name))} {escape(str(each))}" for name, each in values.items() if each is not None)
    if text:
        out.print(f"{title}: {text}", soft_wrap=True)
