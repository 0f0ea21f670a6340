"""The money of a day: added up from disk, by the day of UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from kinodex.jobs.errors import UsageError
from kinodex.web.kept import spend, spent_today, until_tomorrow_s

EVENING = datetime(2026, 11, 23, 23, 59, 30, tzinfo=UTC)
MORNING = datetime(2026, 11, 24, 0, 0, 30, tzinfo=UTC)


def test_each_day_has_its_own(tmp_path: Path) -> None:
    assert spent_today(tmp_path, EVENING) == 0
    for amount in (0.1, 0.2, 1e-7):
        spend(tmp_path, amount, EVENING)
    spend(tmp_path, 5.0, MORNING)
    assert spent_today(tmp_path, EVENING) == 0.1 + 0.2 + 1e-7
    assert spent_today(tmp_path, MORNING) == 5.0
    assert until_tomorrow_s(EVENING) == 30


@pytest.mark.parametrize("cut", [0, 1, 3, 4])
def test_a_line_that_a_crash_cut_does_not_count_and_none_continues_it(tmp_path: Path, cut: int) -> None:
    spend(tmp_path, 1.0, EVENING)
    (file,) = (tmp_path / "spent").iterdir()
    file.write_text(file.read_text() + "0.00"[:cut])
    assert spent_today(tmp_path, EVENING) == 1.0
    spend(tmp_path, 0.25, EVENING)
    assert spent_today(tmp_path, EVENING) == 1.25


def test_what_is_no_amount_is_said(tmp_path: Path) -> None:
    spend(tmp_path, 1.0, EVENING)
    (file,) = (tmp_path / "spent").iterdir()
    file.write_text("0.00.25\n")
    with pytest.raises(UsageError, match=r"0\.00\.25"):
        spent_today(tmp_path, EVENING)
