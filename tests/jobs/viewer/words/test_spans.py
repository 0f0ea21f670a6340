"""Times and lists as a sentence holds them."""

from __future__ import annotations

from kinodex.web.sentences import clock, joined, span


def test_times_have_tenths_and_hours_only_where_they_need_them():
    assert [clock(each) for each in (0, 75.5, 59.96, 3675)] == ["0:00", "1:15.5", "1:00", "1:01:15"]
    assert span({"start_s": 5.0, "end_s": None}) == "0:05"
    assert span({"start_s": None}) == ""


def test_lists_have_an_and():
    assert [joined("abc"[:count]) for count in range(4)] == ["", "a", "a and b", "a, b, and c"]
