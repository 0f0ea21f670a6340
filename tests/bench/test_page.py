"""The bench of the page: the replies, posters and the first paint of a small made-up library."""

from __future__ import annotations

import pytest

from tests.bench.page import PATHS, bench_page, table

VIDEOS = 20


@pytest.mark.needs_chromium
def test_every_figure_is_measured(tmp_path) -> None:
    told: list[str] = []
    figures = bench_page(tmp_path / "library", VIDEOS, 1, told.append)
    assert told == [f"{VIDEOS} of {VIDEOS} videos written"]
    assert figures.replies.keys() == set(PATHS) and all(first > 0 for first, _ in figures.replies.values())
    assert figures.poster_again < figures.poster_cpu
    if figures.first_paint is not None:
        assert figures.grid is not None and 0 < figures.first_paint <= figures.grid
    assert f"{VIDEOS} videos" in table(figures)
