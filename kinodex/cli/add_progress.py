"""Progress of `kinodex add` on a terminal: videos that are done, failures, time left."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from kinodex.jobs.add.run import VideoOutcome, Watch
from kinodex.jobs.output import LINE_EVERY_S, duration, print_every


@contextmanager
def add_progress_bar(console: Console, stage_name: str, every_s: float = LINE_EVERY_S) -> Iterator[Watch]:
    """Show the progress of a run: a bar on a terminal, else a line every `every_s` seconds."""
    counts = AddCounts(stage_name)
    if not console.is_terminal:
        print_line = print_every(console, every_s)

        def line(done: int, total: int, last: VideoOutcome) -> None:
            counts.count(done, total, last)
            print_line(counts.line)

        yield line
        return
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), TextColumn("{task.fields[text]}"))
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as bar:
        began = time.monotonic()
        task = bar.add_task(f"adding {stage_name}", total=None, text="")

        def draw(done: int, total: int, last: VideoOutcome) -> None:
            counts.count(done, total, last)
            bar.update(task, completed=done, total=total, text=counts.text(time.monotonic() - began))

        yield draw


class AddCounts:
    """Counts of the videos of a run so far."""

    def __init__(self, stage_name: str) -> None:
        self._stage_name = stage_name
        self._done = self._total = self._rows = self._failed = self._in_part = 0

    def count(self, done: int, total: int, last: VideoOutcome) -> None:
        self._done, self._total = done, total
        self._rows += last.rows
        self._failed += last.is_failed
        self._in_part += bool(last.problem) and not last.is_failed

    def line(self, seconds: float) -> str:
        """Describe the run in one line, `seconds` after it began."""
        return f"adding {self._stage_name}: {self.text(seconds)}"

    def text(self, seconds: float) -> str:
        parts = [f"{self._done:,} of {self._total:,} videos", f"{self._rows:,} rows"]
        if self._failed:
            parts.append(f"{self._failed:,} failed")
        if self._in_part:
            parts.append(f"{self._in_part:,} in part")
        if 0 < self._done < self._total:
            parts.append(f"{duration(seconds * (self._total - self._done) / self._done)} left")
        return ", ".join(parts)
