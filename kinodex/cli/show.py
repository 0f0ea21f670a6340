"""Duplicates, progress and reports on a terminal, with text of files escaped."""

from __future__ import annotations

import csv
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from kinodex.index.durations import counted, duration
from kinodex.index.library import Library
from kinodex.index.rows import RunRow
from kinodex.index.terminal_text import visible, visible_lines
from kinodex.index.times import clock
from kinodex.jobs.addresses import READING_STAGES
from kinodex.jobs.errors import UsageError
from kinodex.jobs.export.moments import plain_cell
from kinodex.jobs.ingest.commit import STATES, IngestReport, Progress, SourceOutcome, Watch, summary
from kinodex.output import LINE_EVERY_S, console, plain_table, print_every, print_json, say
from kinodex.redaction import redact

if TYPE_CHECKING:
    from kinodex.index.rows import VideoRow
    from kinodex.jobs.add.run import VideoOutcome
    from kinodex.jobs.add.run import Watch as AddWatch
    from kinodex.jobs.duplicates import Duplicate

# Near-duplicates on a terminal, as JSON and as CSV.

CSV_COLUMNS = (
    *("video_id_a", "title_a", "video_id_b", "title_b", "offset_s", "speed"),
    *("start_a_s", "end_a_s", "start_b_s", "end_b_s"),
    *("shared_s", "share_a", "share_b", "score", "likeness"),
)


def show_duplicates(found: Sequence[Duplicate], as_json: bool, as_csv: bool) -> None:
    if as_json:
        print_json([asdict(each) | {"a": _named(each.a), "b": _named(each.b)} for each in found])
        return
    if as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(CSV_COLUMNS)
        writer.writerows(map(plain_cell, row) for each in found for row in _csv_rows(each))
        return
    columns = ("video", "shows the same as", "offset", "speed", "in the first", "in the second", "length", "of each")
    table = plain_table(*columns, "score")
    for each in found:
        names = [escape(visible(row.title)) for row in (each.a, each.b)]
        figures = [duration(each.shared_s), f"{each.share_a:.0%} / {each.share_b:.0%}", f"{each.score:.2f}"]
        shown: tuple[float, float] | None = None
        for part in each.ranges:
            place = ["", ""]
            if shown != (part.offset_s, part.speed):
                place = [f"{'+' if part.offset_s >= 0 else '-'}{clock(abs(part.offset_s))}", f"{part.speed:.4g}"]
            first = f"{clock(max(part.start_a_s, 0.0))} to {clock(part.end_a_s)}"
            second = f"{clock(max(part.start_b_s, 0.0))} to {clock(part.end_b_s)}"
            table.add_row(*(names if shown is None else ["", ""]), *place, first, second, *(figures * (shown is None)))
            shown = part.offset_s, part.speed
    console().print(table if found else "no two videos show the same")


def _named(row: VideoRow) -> dict[str, object]:
    return {name: getattr(row, name) for name in ("video_id", "title", "uri", "duration_s")}


def _csv_rows(each: Duplicate) -> list[tuple[object, ...]]:
    videos = (each.a.video_id, redact(each.a.title), each.b.video_id, redact(each.b.title))
    figures = (each.shared_s, each.share_a, each.share_b, each.score, each.likeness)
    return [
        (
            *videos,
            *(round(value, 4) for value in (part.offset_s, part.speed)),
            *(round(value, 3) for value in (part.start_a_s, part.end_a_s, part.start_b_s, part.end_b_s)),
            *(round(value, 4) for value in figures),
        )
        for part in each.ranges
    ]


# Progress of `kinodex ingest` and `kinodex add`: what is done and failed, rate, time left, the slowest stage.

Draw = Callable[[str, Callable[[float], str], float, float], None]
"""A title, a text by the seconds since the beginning, how much is done, and of how much."""


@contextmanager
def _progress(console: Console, every_s: float, name: str = "") -> Iterator[Draw]:
    """Draw a bar on a terminal, else print a line every `every_s` seconds, which begins with the `name`."""
    if not console.is_terminal:
        print_line = print_every(console, every_s)
        before = f"{name}: " if name else ""
        yield lambda title, text, done, total: print_line(lambda seconds: f"{before}{text(seconds)}")
        return
    # as they are: markup would take `[b]` and `:b:` out of a title
    title_column, text_column = (
        TextColumn(form, markup=False) for form in ("{task.description}", "{task.fields[text]}")
    )
    columns = title_column, BarColumn(bar_width=16), text_column, TimeElapsedColumn()
    on_screen = sys.stdout.isatty()  # then lines are printed above the bar; a pipe gets its lines as they are
    with Bar(*columns, console=console, transient=True, redirect_stdout=on_screen) as bar:
        task = bar.add_task(name or "starting", total=None, text="")
        began = time.monotonic()

        def draw(title: str, text: Callable[[float], str], done: float, total: float) -> None:
            shown = text(time.monotonic() - began)
            bar.update(task, total=total, completed=done, description=title or name, text=shown)

        yield draw


@contextmanager
def progress_bar(console: Console, every_s: float = LINE_EVERY_S) -> Iterator[Watch]:
    with _progress(console, every_s) as draw:
        yield lambda progress: draw(
            visible(progress.current[:24]), partial(progress_line, progress), fraction_done(progress), 1.0
        )


@contextmanager
def add_progress_bar(console: Console, stage_name: str, every_s: float = LINE_EVERY_S) -> Iterator[AddWatch]:
    counts = Counter[str]()

    def text(done: int, total: int, seconds: float) -> str:
        parts = [f"{done:,} of {total:,} videos", f"{counts['rows']:,} rows"]
        parts += [f"{counts[what]:,} {what}" for what in ("failed", "in part") if counts[what]]
        return ", ".join(parts + [f"{duration(seconds * (total - done) / done)} left"] * (0 < done < total))

    with _progress(console, every_s, f"adding {stage_name}") as draw:

        def watch(done: int, total: int, last: VideoOutcome) -> None:
            counts["rows"] += last.rows
            counts["failed"] += last.is_failed
            counts["in part"] += bool(last.problem) and not last.is_failed
            draw("", partial(text, done, total), done, total)

        yield watch


def progress_line(progress: Progress, seconds: float) -> str:
    rate = progress.frames / max(seconds, 1e-3)
    speed = progress.video_s / max(seconds, 1e-3)
    parts = [
        f"{progress.done:,} of {progress.total:,} videos",
        f"{progress.video_s / 3600:.1f} hours",
        f"{rate:.0f} frames/s",
        f"{speed:.0f}x real time",
    ]
    part = fraction_done(progress)
    if part > 0:
        parts.append(f"{duration(seconds * (1 - part) / part)} left")
    if progress.failed:
        parts.append(f"{progress.failed:,} failed")
    if progress.bottleneck:
        parts.append(f"{progress.bottleneck} is the slowest ({progress.busy.get(progress.bottleneck, 0.0):.0%} busy)")
    return ", ".join(parts)


def fraction_done(progress: Progress) -> float:
    if progress.bytes_total:
        return min(progress.bytes_done / progress.bytes_total, 1.0)
    return progress.done / progress.total if progress.total else 0.0


# Report of an ingest run on a terminal: a few lines and tables.

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
    if report.metadata:
        show_metadata(report.metadata)
    if report.outcomes:
        _show_numbers(numbers, out)
    else:
        failures = sum(row.stage in READING_STAGES for row in library.ingest_log.failures())
        before = f"; {failures} failed before, --retry-failed tries them again" if failures else ""
        out.print(f"nothing to do: the library knows all {report.left_out} sources{before}", soft_wrap=True)


ROWS_NAMED = 3


def show_metadata(report: Mapping[str, Any]) -> None:
    out = console()
    columns = ", ".join(f"{name} {kind}" for name, kind in report["columns"].items())
    out.print(f"metadata of {counted(report['videos'], 'video')}; columns: {columns or 'none'}", soft_wrap=True)
    for name, what in (
        ("unmatched", "rows name no video"),
        ("ambiguous", "rows name several videos"),
        ("problems", "files could not be read"),
    ):
        if rows := report[name]:
            more = f" and {len(rows) - ROWS_NAMED:,} more" if len(rows) > ROWS_NAMED else ""
            out.print(escape(visible(f"{len(rows):,} {what}: {', '.join(rows[:ROWS_NAMED])}{more}")), soft_wrap=True)


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
        _show_numbers(run.report, out)
        _show_named("settings", run.report.get("settings", {}), out)
        _show_named("versions", run.report.get("versions", {}), out)
    else:
        _show_named("report", {name: each for name, each in run.report.items() if name != "arithmetic"}, out)
    if arithmetic := run.report.get("arithmetic"):
        out.print(f"vectors made in {escape(arithmetic)}", soft_wrap=True)


def _show_numbers(numbers: Mapping[str, Any], out: Console) -> None:
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


# A line for each source as an ingest is done with it, up to a number that people read.

MOST_LINES = 50
"""Lines of videos, and as many of failures; nobody reads a million, and the library holds the failures."""


@dataclass
class OutcomeLines:
    """Prints outcomes as they come; a watch of an ingest, that its report ends."""

    out: Console
    _read: int = 0
    """Outcomes read so far, of those of the run."""
    _printed: Counter[str] = field(default_factory=Counter)

    def __call__(self, progress: Progress) -> None:
        for outcome in progress.outcomes[self._read :]:
            self._print(outcome)
        self._read = max(self._read, len(progress.outcomes))

    def finish(self, report: IngestReport) -> None:
        for outcome in report.outcomes[self._read :]:
            self._print(outcome)
        left_out = sum(report.count(state) for state in STATES if state != "already there") - self._printed.total()
        if left_out:
            self.out.print(f"and {left_out:,} more; `kinodex info` lists all videos, and what failed")

    def _print(self, outcome: SourceOutcome) -> None:
        if outcome.state != "already there" and self._printed[outcome.state] < MOST_LINES:
            self._printed[outcome.state] += 1
            self.out.print(outcome_line(outcome), soft_wrap=True)


def outcome_line(outcome: SourceOutcome) -> str:
    """Say in one line, as rich's markup, what became of a source that is indexed, moved or failed."""
    name = escape(visible(outcome.title))
    if outcome.moved_from is not None:
        places = escape(visible(f"from {outcome.moved_from} to {outcome.uri}"))
        return f"[green]moved[/]          {name}: its address was changed {places}"
    if outcome.state == "failed":
        return f"[red]failed[/]         {name}: {escape(visible_lines(outcome.problem or ''))}"
    damage = f", {counted(outcome.decode_errors, 'damaged packet')} skipped" if outcome.decode_errors else ""
    note = f" [yellow]({escape(visible_lines(outcome.problem))})[/]" if outcome.problem else ""
    frames = f"{counted(outcome.frames, 'frame')} of {clock(outcome.duration_s)}"
    return f"[green]indexed[/]        {name}: {frames}{damage}{note}"
