"""`kinodex bench search` on a tiny library: what it makes is what it says, and it finds what is there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kinodex.bench.search import Size, bench_search, table
from tests.support.command import Kinodex

SIZE = Size(videos=12, frames=30, lines=5, dim=16, jpeg_bytes=50)


@pytest.mark.parametrize("is_cone", [False, True])
def test_figures(tmp_path, is_cone):
    figures = bench_search(tmp_path / "library", SIZE._replace(is_cone=is_cone), 3, lambda done: None)
    assert figures.recall == pytest.approx(1.0)
    assert figures.index_recall == pytest.approx(1.0)  # so few are scanned
    assert (figures.parts, figures.best_cosine > 0.4) == (0, not is_cone)
    assert all(t.warm_ms > 0 and t.fresh_ms > 0 and t.cold_ms > 0 and t.warm_ms <= t.p95_ms for t in figures.times)
    lines = table(figures).splitlines()
    assert "two words in all lines" in {t.question for t in figures.times}
    assert lines[0].startswith("12 videos of 30 frames, 16 dimensions, 5 transcript lines")
    assert ("narrow cone" in lines[1]) == is_cone
    assert "recall@10 over all frames: 1.000 (goal 0.95: met)" in lines[-1]


def test_the_command_prints_figures_and_progress(kinodex: Kinodex, tmp_path: Path) -> None:
    size = ("--videos", "3", "--frames", "20", "--lines", "2", "--dim", "8", "--queries", "2")
    ran = kinodex("bench", "search", tmp_path / "library", *size, "--json")
    assert json.loads(ran.out)["size"] == [3, 20, 2, 8, 1000, False]
    assert "3 of 3 videos written" in ran.err
    assert "recall@10 over all frames" in kinodex("bench", "search", tmp_path / "library", *size).out
