"""What a person sees while videos are indexed: videos done, rate, time left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from jobs.ingest import Progress as IngestProgress


@contextmanager
def progress_bar(console: Console, total_video_s: float | None) -> Iterator[Callable[[IngestProgress], None]]:
    """Give a function that draws each progress; the time left needs `total_video_s`, the length of it all."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("indexing", total=None, rate="", left="")
        began = time.monotonic()

        def draw(progress: IngestProgress) -> None:
            seconds = max(time.monotonic() - began, 1e-3)
            speed = progress.video_s / seconds
            left = ""
            if total_video_s is not None and speed > 0:
                left = f"{max(total_video_s - progress.video_s, 0) / speed:.0f} s left"
            bar.update(
                task,
                completed=progress.done,
                total=progress.total,
                description=progress.source.title[:40],
                rate=f"{progress.frames} frames, {progress.frames / seconds:.0f}/s, {speed:.0f}x real time",
                left=left,
            )

        yield draw
