"""Presentation time, and the time that a player shows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kinodex.index.clocks import first_zero_s, moved, moved_s, player_s, presentation_s, stored_range

ZEROS = {
    ("/films/news.ts", 1000.0): 1000.0,
    ("/films/news.ts", 1.4): 1.4,
    ("s3://films/NEWS.M2TS?versionId=3", 1.4): 1.4,
    ("https://films/news.ts#t=3", 1.4): 1.4,
    ("/films/take #2.ts", 1.4): 1.4,
    ("/films/who? me.ts", 1.4): 1.4,
    ("/films/trailer.ts?.mp4", 1.4): 0.0,
    ("/films/late.mp4", 1.075): 0.0,
    ("/films/cut.mkv", 754.2): 754.2,
    ("/films/film.mp4", 0.0): 0.0,
    ("imported:film", 0.0): 0.0,
}


def test_a_player_shows_zero_where_a_stream_begins_and_where_a_file_counts_from() -> None:
    assert {each: first_zero_s(*each) for each in ZEROS} == ZEROS
    for zero in ZEROS.values():
        film: Any = SimpleNamespace(zero_s=zero)
        assert presentation_s(film, 12.5) == pytest.approx(zero + 12.5)
        assert player_s(film, zero + 12.5) == pytest.approx(12.5)


def test_times_that_are_moved_there_and_back_stay_equal() -> None:
    ticks = np.arange(0, 90_000 * 4, 1501) / 90_000
    for zero_s in (0.0, 1.4, 4000.1 / 3, 95_443.717689):
        shown = moved_s(ticks + zero_s, -zero_s)
        assert (moved_s(moved_s(shown, zero_s), -zero_s) == shown).all()
        assert np.abs(shown - ticks).max() < 1e-8
    row = {
        "start_s": 4001.5,
        "end_s": 4002.0,
        "text": "a b",
        "words": [{"text": "a", "start_s": 4001.5, "end_s": 4001.7}],
    }
    assert moved(row, 0.0) == row
    assert moved(row, -4000.0) == {
        "start_s": 1.5,
        "end_s": 2.0,
        "text": "a b",
        "words": [{"text": "a", "start_s": 1.5, "end_s": 1.7}],
    }


def test_a_range_of_shown_times_holds_the_stored_times_that_are_shown_in_it() -> None:
    zero_s = 4000.1 / 3
    for tick in range(200):
        stored = zero_s + tick / 30
        shown = moved_s(stored, -zero_s)
        start_s, end_s = stored_range(zero_s, shown, shown)
        assert start_s is not None and end_s is not None
        assert start_s <= stored
        assert not stored < end_s
    assert stored_range(0.0, 1.0, None) == (1.0, None)
