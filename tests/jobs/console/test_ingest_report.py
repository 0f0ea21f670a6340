"""Report of an ingest: short for people, whole as JSON, read back from the library."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kinodex.cli.show import MOST_LINES, show_report, show_runs
from kinodex.index.library import Library
from kinodex.index.rows import RunRow
from kinodex.index.spaces.towers import Fingerprint
from kinodex.jobs.errors import UsageError
from kinodex.jobs.ingest.commit import IngestReport, SourceOutcome, Totals, summary


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library.create(str(tmp_path / "library"), {"fps": 1.0}, Fingerprint("tiny", "0" * 12, "0" * 64, "{}", 4))


def report(indexed: int, failed: int) -> IngestReport:
    good = [SourceOutcome(f"/{n}.mp4", f"film {n}", "indexed", str(n), 10, 10.0) for n in range(indexed)]
    bad = [
        SourceOutcome(
            f"/bad {n}.mp4", f"bad {n}", "failed", problem=f"/bad {n}.mp4: no [video]", error_class="NotAVideo"
        )
        for n in range(failed)
    ]
    return IngestReport(
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
        arithmetic="float32, torch 2",
        workers=2,
        retried=4,
        fell_back={"decord: no such codec": 5},
    )


def test_a_long_report_is_short_and_shows_failures_too(library: Library, capsys: pytest.CaptureFixture[str]) -> None:
    show_report(report(1000, 2), library, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert next(line for line in lines if line.startswith("failed ")).endswith("bad 0: /bad 0.mp4: no [video]")
    assert sum("indexed  " in line for line in lines) == MOST_LINES
    text = "\n".join(lines)
    for each in (
        "and 950 more",
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


def test_a_report_of_more_outcomes_than_it_holds_counts_them_all(
    library: Library, capsys: pytest.CaptureFixture[str]
) -> None:
    totals = Totals({"indexed": 900_000, "failed": 70}, {"NotAVideo": 70}, 9_000_000, 9e6)
    show_report(replace(report(100, 2), totals=totals), library, as_json=False)
    text = capsys.readouterr().out
    assert f"and {900_070 - MOST_LINES - 2:,} more" in text
    assert "900,000 indexed, 0 already there, 70 failed" in text and "NotAVideo 70" in text


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
