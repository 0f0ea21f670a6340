"""The runs that wrote a library, on a terminal and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from rich.console import Console
from rich.markup import escape

from kinodex.cli.ingest_report import show_named, show_numbers
from kinodex.index.durations import duration
from kinodex.index.library import Library
from kinodex.index.rows import RunRow
from kinodex.jobs.errors import UsageError
from kinodex.output import console, plain_table, print_json

MOST_RUNS = 20


def show_runs(library: Library, run_id: str | None, as_json: bool) -> None:
    """Show one run of a library, or all of them and the latest in numbers.

    Raises UsageError: no run has that id, or more than one begins with it.
    """
    runs = library.ingest_log.runs()
    if run_id is not None:
        run = _run_lines(runs, run_id, library)
        if as_json:
            print_json(asdict(run))
        else:
            _show_run(run, console())
    elif as_json:
        print_json([asdict(run) for run in runs])
    else:
        _show_list(runs, console())


def _run_lines(runs: Sequence[RunRow], run_id: str, library: Library) -> RunRow:
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
        show_numbers(run.report, out)
        show_named("settings", run.report.get("settings", {}), out)
        show_named("versions", run.report.get("versions", {}), out)
    else:
        show_named("report", {name: each for name, each in run.report.items() if name != "arithmetic"}, out)
    if arithmetic := run.report.get("arithmetic"):
        out.print(f"vectors made in {escape(arithmetic)}", soft_wrap=True)
