"""`kinodex bench settle` on a tiny library: every video is complete, with the rows that it says, and is counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from kinodex.index.library import Library
from kinodex.index.sweep import audit
from kinodex.jobs.errors import UsageError
from tests.bench.settle import STEPS, SettleLoad, as_json, bench_settle, table

LOAD = SettleLoad(videos=40, frames=12, at_once=3, frames_a_commit=30, look_every_s=600.0)


def test_figures(tmp_path: Path) -> None:
    lines: list[str] = []
    figures = bench_settle(tmp_path / "library", LOAD, lines.append)
    library = Library.open(str(tmp_path / "library"))
    assert len(library.videos()) == 40
    assert audit(library).problems == ()
    assert [step.videos for step in figures.steps] == list(range(4, 41, 4))
    assert sum(step.settled for step in figures.steps) == 40
    first = as_json(figures)["steps"][0]
    # two commits of three and one videos, each of segments, lines, videos and sources
    assert (first["commits"], first["rows"]) == (8, 48)
    assert first["videos_a_second"] == pytest.approx(4 / first["clock_s"])
    assert len(lines) == STEPS
    shown = table(figures)
    assert all(line in shown for line in lines)
    assert "goal 300 videos a second" in shown.splitlines()[-1]
    with pytest.raises(UsageError, match="there is a library already"):
        bench_settle(tmp_path / "library", LOAD, lines.append)


def test_a_run_that_takes_too_long_stops_after_a_tenth(tmp_path: Path) -> None:
    load = SettleLoad(videos=10, frames=2, at_once=1, limit_s=0.0)
    figures = bench_settle(tmp_path / "library", load, lambda line: None)
    assert [step.videos for step in figures.steps] == [1]
    assert figures.growth == figures.cpu_growth == 1.0


def test_a_library_that_knows_videos_before(tmp_path: Path) -> None:
    figures = bench_settle(tmp_path / "library", SettleLoad(videos=10, frames=2, known=30), lambda line: None)
    library = Library.open(str(tmp_path / "library"))
    assert (len(library.videos()), len(library.ingest_log.sources())) == (40, 40)
    assert audit(library).problems == ()
    assert "; 30 videos known before;" in table(figures)
