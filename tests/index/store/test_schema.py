"""Keys of frames."""

from __future__ import annotations

import hashlib

import pytest

from kinodex.index.store.schema import frame_key


def test_frame_keys_are_distinct_int64():
    numbers = (0, 1, 2**24 - 1, 2**24, 2**24 + 1, 2**30, 2**31 - 1)
    keys = {frame_key(f"video {video}", number) for video in range(300) for number in numbers}
    assert len(keys) == 2100
    assert all(0 <= key < 2**63 for key in keys)
    for wrong in (2**31, -1):
        with pytest.raises(ValueError, match="2147483647"):
            frame_key("a", wrong)


def test_stored_keys_stay_as_they_are():
    upper = int.from_bytes(hashlib.sha256(b"a").digest()[:5]) >> 1
    assert [frame_key("a", number) for number in (0, 5, 2**24 - 1)] == [upper << 24 | n for n in (0, 5, 2**24 - 1)]
