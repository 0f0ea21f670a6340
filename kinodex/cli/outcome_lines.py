"""A line for each source as an ingest is done with it, up to a number that people read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from rich.console import Console
from rich.markup import escape

from kinodex.index.durations import counted
from kinodex.index.terminal_text import visible, visible_lines
from kinodex.index.times import clock
from kinodex.jobs.ingest.reports import STATES, IngestReport, Progress, SourceOutcome

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
