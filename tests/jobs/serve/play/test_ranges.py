"""Range headers, also those that try to make a server do too much."""

from __future__ import annotations

import pytest

from kinodex.web.play import Part, choose_part

SIZE, TAG = 1000, '"state"'
WHOLE = Part(0, SIZE, is_whole=True)


@pytest.mark.parametrize(
    ("header", "part"),
    [
        ("bytes=0-", Part(0, SIZE)),
        ("bytes=0-0", Part(0, 1)),
        ("bytes=10-19", Part(10, 20)),
        ("Bytes= 10-19 ", Part(10, 20)),
        ("bytes=990-5000", Part(990, SIZE)),
        ("bytes=-1", Part(999, SIZE)),
        ("bytes=-5000", Part(0, SIZE)),
        (f"bytes=5-{'9' * 4000}", Part(5, SIZE)),
    ],
)
def test_one_range_is_sent(header, part):
    assert choose_part(header, None, SIZE, TAG) == part


@pytest.mark.parametrize("header", ["bytes=1000-", "bytes=5000-6000", "bytes=-0", f"bytes={'9' * 4000}-"])
def test_a_range_behind_the_end_is_none(header):
    assert choose_part(header, None, SIZE, TAG) is None


@pytest.mark.parametrize(
    "header",
    [
        None,
        "bytes=20-10",
        "bytes=-",
        "bytes=--5",
        "bytes=-5-9",
        "bytes=a-b",
        "bytes=0x1-0x9",
        "bytes=٣-٩",
        "items=0-5",
        "bytes=0-1,5-6",
        "bytes=" + ",".join(["0-"] * 5000),
        "0-5",
    ],
)
def test_malformed_and_several_ranges_are_the_whole_file(header):
    assert choose_part(header, None, SIZE, TAG) == WHOLE


def test_a_range_of_another_state_of_the_file_is_the_whole_file():
    assert choose_part("bytes=5-9", TAG, SIZE, TAG) == Part(5, 10)
    assert choose_part("bytes=5-9", '"other"', SIZE, TAG) == WHOLE
    assert choose_part("bytes=5-9", "Wed, 21 Oct 2015 07:28:00 GMT", SIZE, TAG) == WHOLE


def test_an_empty_file_has_no_range():
    assert choose_part("bytes=0-", None, 0, TAG) is None
    assert choose_part("bytes=-5", None, 0, TAG) is None
    assert choose_part(None, None, 0, TAG) == Part(0, 0, is_whole=True)
