"""Keys of frames."""

from __future__ import annotations

import pytest

from index.store.schema import frame_key


def test_frame_keys_are_distinct_int64():
    keys = {frame_key(f"video {video}", number) for video in range(300) for number in (0, 1, 2**24 - 1)}
    assert len(keys) == 900
    assert all(0 <= key < 2**63 for key in keys)
    with pytest.raises(ValueError, match="16777216"):
        frame_key("a", 2**24)
