"""Progress of an ingest: lines in a file, a bar on a terminal."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from kinodex.cli.show import fraction_done, progress_bar, progress_line
from kinodex.jobs.ingest.commit import Progress

HALF = Progress(
    done=1200,
    total=4000,
    failed=3,
    frames=90_000,
    video_s=90_000.0,
    bytes_done=5_000,
    bytes_total=10_000,
    busy={"decode": 0.93, "embed": 0.4},
    bottleneck="decode",
    current="a [bold] :b: film",
)


def test_a_run_in_one_line() -> None:
    assert progress_line(HALF, 900.0) == (
        "1,200 of 4,000 videos, 25.0 hours, 100 frames/s, 100x real time, 15 min left, 3 failed, "
        "decode is the slowest (93% busy)"
    )
    start = replace(HALF, done=0, failed=0, frames=0, video_s=0.0, bytes_done=0, bottleneck=None)
    assert progress_line(start, 0.0) == "0 of 4,000 videos, 0.0 hours, 0 frames/s, 0x real time"


def test_time_left_goes_by_bytes_and_else_by_count() -> None:
    assert fraction_done(HALF) == 0.5
    assert fraction_done(replace(HALF, bytes_total=None)) == 0.3
    assert fraction_done(replace(HALF, bytes_total=None, total=0)) == 0.0


def test_where_there_is_no_terminal_a_line_now_and_then() -> None:
    out = io.StringIO()
    with progress_bar(Console(file=out, width=40), every_s=0.0) as watch:
        watch(HALF)
        watch(HALF)
    assert [line.partition(",")[0] for line in out.getvalue().splitlines()] == ["1", "1"]
    quiet = io.StringIO()
    with progress_bar(Console(file=quiet), every_s=30.0) as watch:
        watch(HALF)
    assert quiet.getvalue() == ""


def test_on_a_terminal_a_bar_that_goes_away() -> None:
    out = io.StringIO()
    with progress_bar(Console(file=out, force_terminal=True, width=200, color_system=None)) as watch:
        watch(HALF)
    assert "1,200 of 4,000 videos" in out.getvalue()
    assert "a [bold] :b: film" in out.getvalue()
    assert out.getvalue().endswith("\x1b[2K")
