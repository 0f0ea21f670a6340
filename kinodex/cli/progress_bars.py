"""Progress of `kinodex ingest` and `kinodex add`: what is done and failed, rate, time left, the slowest stage."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from kinodex.index.durations import duration
from kinodex.index.terminal_text import visible
from kinodex.jobs.ingest.reports import Progress, Watch
from kinodex.output import LINE_EVERY_S, print_every

if TYPE_CHECKING:
    from kinodex.jobs.add.run import VideoOutcome
    from kinodex.jobs.add.run import Watch as AddWatch

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
