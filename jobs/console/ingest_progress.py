"""Progress of `kinodex ingest` on a terminal: videos and hours done, rate, time left, failures, the slowest stage."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from jobs.console.escape import visible
from jobs.console.output import LINE_EVERY_S, duration, print_every
from jobs.ingest.outcomes import Progress, Watch


@contextmanager
def progress_bar(console: Console, every_s: float = LINE_EVERY_S) -> Iterator[Watch]:
    """Show each progress: a bar on a terminal, else a line every `every_s` seconds."""
    with _bar(console) if console.is_terminal else _lines(console, every_s) as watch:
        yield watch


@contextmanager
def _bar(console: Console) -> Iterator[Watch]:
    columns = (_plain("{task.description}"), BarColumn(bar_width=16), _plain("{task.fields[text]}"))
    on_screen = sys.stdout.isatty()  # then lines are printed above the bar; a pipe gets its lines as they are
    with Bar(*columns, TimeElapsedColumn(), console=console, transient=True, redirect_stdout=on_screen) as bar:
        task = bar.add_task("starting", total=None, text="")
        began = time.monotonic()

        def draw(progress: Progress) -> None:
            text, title = progress_line(progress, time.monotonic() - began), visible(progress.current[:24])
            bar.update(task, total=1.0, completed=fraction_done(progress), description=title, text=text)

        yield draw


def _plain(text_format: str) -> TextColumn:
    """Make a column whose text is shown as it is: markup would take `[b]` and `:b:` out of a title."""
    return TextColumn(text_format, markup=False)


@contextmanager
def _lines(console: Console, every_s: float) -> Iterator[Watch]:
    print_line = print_every(console, every_s)
    yield lambda progress: print_line(lambda seconds: progress_line(progress, seconds))


def progress_line(progress: Progress, seconds: float) -> str:
    """Describe a run in one line, `seconds` after it began."""
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
    """Fraction of a run that is done, 0 to 1: of its bytes, or of its sources if some sizes are unknown."""
    if progress.bytes_total:
        return min(progress.bytes_done / progress.bytes_total, 1.0)
    return progress.done / progress.total if progress.total else 0.0
