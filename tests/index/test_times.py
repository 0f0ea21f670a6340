"""Times: what is printed is read again, and what is no time is refused."""

from __future__ import annotations

import pytest

from kinodex.index.errors import QueryError
from kinodex.index.times import clock, cue_clock, parse_time, player_clock

READ = {
    "90": 90.0,
    "90.5": 90.5,
    " .5 ": 0.5,
    "-3": -3.0,
    "1:30": 90.0,
    "1:30.0": 90.0,
    "0:05": 5.0,
    "90:00": 5400.0,
    "1:02:05": 3725.0,
    "00:01:15,500": 75.5,
    "1:01:15.0": 3675.0,
}
REFUSED = ["", "soon", "1:75", "1:60:00", "1:2:3:4", "-1:30", "1:", ":30", "nan", "inf", "1e999", "1:30 pm"]


def test_seconds_and_clock_times_are_read() -> None:
    assert {text: parse_time(text) for text in READ} == READ


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(QueryError, match=r"give seconds \(90\.5\) or a clock time \(1:30\.5, 1:02:05\)"):
        parse_time(text)


def test_every_printed_time_is_read_again() -> None:
    for tenths in (0, 1, 599, 600, 35_999, 36_000, 36_750, 3_600_000):
        assert parse_time(clock(tenths / 10)) == tenths / 10
        assert parse_time(player_clock(tenths / 10)) == tenths // 10
        assert parse_time(cue_clock(tenths / 10)) == parse_time(cue_clock(tenths / 10, ",")) == tenths / 10
    assert (clock(75.55), clock(59.96), clock(3675)) == ("1:15.6", "1:00.0", "1:01:15.0")
    assert (player_clock(75.9), player_clock(-61), cue_clock(3675.0625)) == ("1:15", "-1:01", "01:01:15.062")
