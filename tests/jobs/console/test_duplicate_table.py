"""The table of near-duplicates: a row a pair, further ranges below, titles without tricks, and no secret in CSV."""

from __future__ import annotations

import csv
import io

import pytest

from kinodex.cli.show import CSV_COLUMNS, show_duplicates
from kinodex.jobs.duplicates import Duplicate, DuplicateRange
from tests.support.libraries.random_library import made

A, B = (made(name, 60, 1).video_row(name) for name in ("a [b]film[/b]", "b\x1b[31m"))
RANGES = (
    DuplicateRange(0.0, 20.0, 75.5, 95.5, 75.5, 25 / 24),
    DuplicateRange(30.0, 40.0, 105.5, 115.5, 75.5, 25 / 24),
    DuplicateRange(40.0, 50.0, 20.0, 30.0, -20.0, 1.0),
)
PAIR = Duplicate(A, B, 75.5, 25 / 24, RANGES, 30.0, 0.5, 0.25, 0.91, 0.8)


def test_each_range_has_a_line_and_the_pair_the_first(capsys: pytest.CaptureFixture[str]) -> None:
    show_duplicates([PAIR], as_json=False, as_csv=False)
    head, first, second, third = capsys.readouterr().out.splitlines()
    assert head.split()[:2] == ["video", "shows"]
    assert "a [b]film[/b]" in first and "\x1b" not in first
    for cell in ("+1:15.5", "1.042", "0:00.0 to 0:20.0", "1:15.5 to 1:35.5", "50% / 25%", "0.91"):
        assert cell in first
    assert second.split() == ["0:30.0", "to", "0:40.0", "1:45.5", "to", "1:55.5"]
    assert third.split()[:2] == ["-0:20.0", "1"], "a range of another offset says so"


def test_csv_has_a_row_a_range(capsys: pytest.CaptureFixture[str]) -> None:
    show_duplicates([PAIR], as_json=False, as_csv=True)
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert list(rows[0]) == list(CSV_COLUMNS)
    assert [(row["start_a_s"], row["end_b_s"]) for row in rows] == [
        ("0.0", "95.5"),
        ("30.0", "115.5"),
        ("40.0", "30.0"),
    ]
    assert [row["offset_s"] for row in rows] == ["75.5", "75.5", "-20.0"]


def test_none_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    show_duplicates([], as_json=False, as_csv=False)
    assert capsys.readouterr().out == "no two videos show the same\n"
