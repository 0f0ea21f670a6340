"""Keys of frames."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest

from kinodex.index.errors import QueryError
from kinodex.index.store.database import Tables
from kinodex.index.store.filters import above, at_least, below, equal, one_of, other_than
from kinodex.index.store.frame_keys import frame_key


def test_frame_keys_are_distinct_int64():
    numbers = (0, 1, 2**24 - 1, 2**24, 2**24 + 1, 2**30, 2**31 - 1)
    keys = {frame_key(f"video {video}", number) for video in range(300) for number in numbers}
    assert len(keys) == 2100
    assert all(0 <= key < 2**63 for key in keys)
    upper = int.from_bytes(hashlib.sha256(b"a").digest()[:5]) >> 1
    stored = [upper << 24 | n for n in (0, 5, 2**24 - 1)]
    assert [frame_key("a", number) for number in (0, 5, 2**24 - 1)] == stored, "as they are in libraries"
    for wrong in (2**31, -1):
        with pytest.raises(ValueError, match="2147483647"):
            frame_key("a", wrong)


# Filters match what their values say, whatever the values are.

ODD = 'it\'s 100% "odd"; DROP TABLE videos --'


def test_a_value_is_never_part_of_the_query(tables: Tables) -> None:
    row = {"kind": "shot", "segment_no": 0, "start_s": 0.0, "end_s": 1.0}
    odd = ["a\\b", "nul\0l", "tab\t\r\n", "\u202e\x7f", "%", "_", "日本", "--", "/*", "''", "\\'", "{}", "é"]
    values = [ODD, "it's", 'q"q', *odd, "other"]
    tables.append("segments", [row | {"video_id": value} for value in values])
    for value in values:
        for where in (equal("video_id", value), one_of("video_id", [value])):
            assert tables.rows("segments", where)["video_id"].to_pylist() == [value]
        assert tables.count("segments", other_than("video_id", value)) == len(values) - 1
    with pytest.raises(QueryError, match="is not UTF-8"):
        equal("video_id", "\udcff")


def test_numbers_of_any_size_and_kind(tables: Tables) -> None:
    row = {"video_id": "aaaa", "kind": "shot"}
    times = [-1e300, -0.5, 0.0, 1e-300, 1 / 3, 2.0]
    tables.append("segments", [row | {"segment_no": n, "start_s": s, "end_s": s} for n, s in enumerate(times)])
    others: list[Any] = [float("inf"), float("-inf"), np.float64(1 / 3), np.float32(0.5), np.int64(2), 10**15]
    for value in (*times, *others):
        assert tables.count("segments", at_least("start_s", value)) == sum(time >= float(value) for time in times)
        assert tables.count("segments", above("start_s", value)) == sum(time > float(value) for time in times)
        assert tables.count("segments", below("start_s", value)) == sum(time < float(value) for time in times)
    assert tables.count("segments", one_of("segment_no", [0, 2, 9]) | equal("segment_no", 5)) == 3
    assert tables.count("segments", one_of("video_id", [])) == 0
