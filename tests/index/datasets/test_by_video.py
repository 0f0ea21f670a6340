"""Frames video by video: in order, each once, with what belongs to it, in tables of a bounded size."""

from __future__ import annotations

import numpy as np
import pytest

from kinodex.index.datasets import frames_by_video
from kinodex.index.errors import DamagedRows, LibraryError, SpaceMismatch
from kinodex.index.library import Library
from kinodex.index.store.schema import CHECKSUM, equal
from tests.index.datasets.conftest import VIDEOS
from tests.support.libraries.random_library import other_space

COLUMNS = ["video_id", "frame_no", "title", "jpeg", "vector"]
ORDER = ["dddd", "bbbb", "aaaa"]


@pytest.mark.parametrize("batch_rows", [3, 100, 10_000])
def test_frames_come_in_the_order_of_videos_and_numbers(patchy: Library, batch_rows: int) -> None:
    tables = list(frames_by_video(patchy, COLUMNS, ORDER, batch_rows=batch_rows))
    assert max(table.num_rows for table in tables) <= batch_rows
    rows = [row for table in tables for row in table.to_pylist()]
    by_id = {video.video_id: video for video in VIDEOS.values()}
    assert [(row["video_id"], row["frame_no"]) for row in rows] == [
        (video_id, number) for video_id in ORDER for number in range(len(by_id[video_id].vectors))
    ]
    for row in rows:
        assert (row["title"], row["jpeg"]) == (
            f"film {row['video_id']}",
            f"jpeg {row['video_id']} {row['frame_no']}".encode(),
        )
        assert np.array_equal(np.array(row["vector"], np.float16), by_id[row["video_id"]].vectors[row["frame_no"]])


def test_short_videos_are_read_together(patchy: Library) -> None:
    sizes = [table.num_rows for table in frames_by_video(patchy, ["vector"], ["aaaa", "bbbb", "dddd"], batch_rows=20)]
    assert sizes == [13, *[20] * 35]


def test_a_video_that_is_gone_or_lacks_rows_is_an_error(patchy: Library) -> None:
    with pytest.raises(LibraryError, match=r"video cccc is not in .* any more"):
        list(frames_by_video(patchy, COLUMNS, ["aaaa", "cccc"]))
    patchy.tables.delete("frames", equal("video_id", "dddd") & equal("frame_no", 5))
    patchy.tables.delete("frames", equal("video_id", "bbbb") & equal("frame_no", 1))
    with pytest.raises(LibraryError, match=r"film dddd in .* have 699 of 700 frames"):
        list(frames_by_video(patchy, ["jpeg"], ["dddd"], batch_rows=50))
    with pytest.raises(LibraryError, match=r"film aaaa and 1 more in .* have 12 of 13 frames"):
        list(frames_by_video(patchy, ["jpeg"], ["aaaa", "bbbb"]))
    with pytest.raises(SpaceMismatch, match="got space"):
        list(frames_by_video(patchy, ["vector"], ["aaaa"], space=other_space().name))


def test_a_damaged_picture_is_an_error(patchy: Library) -> None:
    patchy.tables.update("frames", equal("video_id", "aaaa") & equal("frame_no", 4), {CHECKSUM: 1})
    with pytest.raises(DamagedRows, match="the picture of frame 4 of video aaaa"):
        list(frames_by_video(patchy, COLUMNS, ORDER))
    assert sum(table.num_rows for table in frames_by_video(patchy, ["frame_no", "vector"], ["aaaa"])) == 9
