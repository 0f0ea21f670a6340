"""What people see of a run while it goes on and after: a line, a bar, a report that a screen can hold."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from rich.console import Console

from index.embedding.space import Fingerprint
from index.library import Library
from index.rows import RunRow
from jobs.annotate.stage import VideoOutcome
from jobs.console.add_progress import add_progress_bar
from jobs.console.ingest_progress import duration, fraction_done, progress_bar, progress_line
from jobs.console.ingest_report import MOST_LINES, show_report, show_runs
from jobs.errors import UsageError
from jobs.ingest.outcomes import Progress, Report, SourceOutcome, summary

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
    current="a [bold] film",
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


@pytest.mark.parametrize(
    ("seconds", "text"), [(2.5, "2.5 s"), (40, "40 s"), (720, "12 min"), (12600, "3.5 h"), (260_000, "3.0 days")]
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


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
    assert "a [bold] film" in out.getvalue()
    assert out.getvalue().endswith("\x1b[2K")


ADDED = VideoOutcome("a", "/a.mp4", "a", 12)
IN_PART = VideoOutcome("b", "/b.mp4", "b", 1_000, "2 of 9 segments got no caption")
FAILED = VideoOutcome("c", "/c.mp4", "c", 0, "nothing is there", "SourceMissing")


def test_what_is_added_is_told_in_lines_too_with_what_failed() -> None:
    out = io.StringIO()
    with add_progress_bar(Console(file=out, width=20), "captions", every_s=0.0) as watch:
        for done, last in enumerate((ADDED, IN_PART, FAILED), start=1):
            watch(done, 3, last)
    lines = [re.sub(r", [^,]+ left$", ", LEFT", line) for line in out.getvalue().splitlines()]
    assert lines == [
        "adding captions: 1 of 3 videos, 12 rows, LEFT",
        "adding captions: 2 of 3 videos, 1,012 rows, 1 in part, LEFT",
        "adding captions: 3 of 3 videos, 1,012 rows, 1 failed, 1 in part",
    ]
    quiet = io.StringIO()
    with add_progress_bar(Console(file=quiet), "captions", every_s=30.0) as watch:
        watch(1, 2, ADDED)
    assert quiet.getvalue() == ""


def test_what_is_added_is_told_by_a_bar_on_a_terminal() -> None:
    out = io.StringIO()
    with add_progress_bar(
        Console(file=out, force_terminal=True, width=200, color_system=None), "captions", every_s=0.0
    ) as watch:
        watch(2, 4, FAILED)
    assert "2 of 4 videos, 0 rows, 1 failed" in out.getvalue()
    assert out.getvalue().endswith("\x1b[2K")


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library.create(str(tmp_path / "library"), {"fps": 1.0}, Fingerprint("tiny", "0" * 12, "0" * 64, "{}", 4))


def report(indexed: int, failed: int) -> Report:
    good = [SourceOutcome(f"/{n}.mp4", f"film {n}", "indexed", str(n), 10, 10.0) for n in range(indexed)]
    bad = [
        SourceOutcome(
            f"/bad {n}.mp4", f"bad {n}", "failed", problem=f"/bad {n}.mp4: no [video]", error_class="NotAVideo"
        )
        for n in range(failed)
    ]
    return Report(
        run_id="0123456789abcdef",
        started_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        seconds=50.0,
        outcomes=(*good, *bad, SourceOutcome("/again.mp4", "again", "already there", "0")),
        left_out=7,
        stopped="2 sources failed, and 1 were allowed",
        seconds_by_stage={"decode": 75.0, "embed": 25.0, "total": 100.0},
        utilisation={"decode": 0.75, "embed": 0.5},
        settings={"fps": 1.0, "workers": None},
        versions={"av": "18"},
        workers=2,
        retried=4,
        fell_back={"decord: no such codec": 5},
    )


def test_a_long_report_is_short_and_shows_failures_first(library: Library, capsys: pytest.CaptureFixture[str]) -> None:
    show_report(report(1000, 2), library, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("bad 0: /bad 0.mp4: no [video]")
    assert sum("indexed  " in line for line in lines) == MOST_LINES - 2
    text = "\n".join(lines)
    for each in (
        "and 952 more",
        "1,000 indexed, 1 already there, 2 failed, 7 left out as known; 10,000 frames",
        "stopped early: 2 sources failed",
        "failures by class: NotAVideo 2",
        "decord: no such codec 5",
        "4 pieces of work were done again",
        "2 workers, 1 embedders",
        "decode 75%, embed 50%",
    ):
        assert each in text
    assert [line.split() for line in lines if line.startswith("decode ")] == [["decode", "75.0", "75%"]]
    assert "total" not in text


def test_a_report_as_json_has_every_outcome(library: Library, capsys: pytest.CaptureFixture[str]) -> None:
    show_report(report(60, 1), library, as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert len(told["sources"]) == 62
    assert told["counts"] == {"indexed": 60, "already there": 1, "failed": 1}
    assert told["failures_by_class"] == {"NotAVideo": 1}
    assert (told["frames"], told["video_s"], told["library"]) == (600, 600.0, library.uri)


def test_runs_are_read_back_from_the_library(library: Library, capsys: pytest.CaptureFixture[str]) -> None:
    show_runs(library, None, as_json=False)
    assert "no run" in capsys.readouterr().out
    told = json.loads(json.dumps(summary(report(3, 1)), default=str))
    began = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    library.ingest_log.add_run(RunRow("aaaa1111", "ingest", "stopped", began, began + timedelta(seconds=50), told))
    later = began + timedelta(hours=1)
    library.ingest_log.add_run(RunRow("aaaa2222", "add captions", "done", later, later, {"added": 12}))

    show_runs(library, None, as_json=False)
    both = capsys.readouterr().out
    assert both.index("aaaa2222") < both.index("aaaa1111")
    assert "added 12" in both
    show_runs(library, "aaaa1", as_json=False)
    one = capsys.readouterr().out
    assert "3 indexed, 1 already there, 1 failed" in one
    assert "settings: fps 1.0" in one
    assert "workers None" not in one
    show_runs(library, "aaaa1", as_json=True)
    assert json.loads(capsys.readouterr().out)["report"] == told
    for wrong in ("aaaa", "bbbb"):
        with pytest.raises(UsageError, match=f"--run {wrong}"):
            show_runs(library, wrong, as_json=False)
