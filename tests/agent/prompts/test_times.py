"""Times as prompts write them."""

from __future__ import annotations

import pytest

from kinodex.agent.prompts import beside, beside_range, clock, seconds
from kinodex.agent.protocol import Segment


@pytest.mark.parametrize(
    ("time_s", "text"), [(0, "0:00"), (59.9, "0:59"), (83, "1:23"), (3725.4, "1:02:05"), (-5, "-0:05")]
)
def test_clock_times_are_those_of_a_player(time_s: float, text: str) -> None:
    assert clock(time_s) == text


def test_seconds_are_short() -> None:
    assert [seconds(each) for each in (83.0, 83.04, 83.5)] == ["83 s", "83 s", "83.5 s"]


def test_clock_time_stands_beside_seconds_from_a_minute_on() -> None:
    assert [beside(each) for each in (59.0, 83.0)] == ["", " (1:23)"]
    assert beside_range(Segment(1, "v", 0.0, 59.0)) == ""
    assert beside_range(Segment(1, "v", 50.0, 3725.0)) == " (0:50 to 1:02:05)"
