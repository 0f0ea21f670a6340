"""Ranges of a video as one film, opened again by PyAV; several videos are several files."""

from __future__ import annotations

from pathlib import Path

import pytest

from kinodex.jobs.errors import UsageError
from kinodex.jobs.export.media import MANIFEST, check_clip_path, export_joined, join_clips, merged_ranges
from tests.jobs.export.media.test_clips import moment, opened, seconds

__all__ = ["opened"]


def test_ranges_are_joined_a_file_a_video(opened, tmp_path: Path) -> None:
    ranges = [moment(opened, "film-02", *each) for each in ((8.0, 9.0), (1.0, 2.0), (1.5, 3.0))]
    assert merged_ranges(ranges) == ((1.0, 3.0), (8.0, 9.0))
    (one,) = join_clips(opened, ranges, tmp_path / "evidence.mp4")
    assert (one.path.name, one.ranges) == ("evidence.mp4", ((1.0, 3.0), (8.0, 9.0)))
    assert seconds(one.path) == pytest.approx(3.0, abs=0.1)
    both = join_clips(opened, [*ranges, moment(opened, "film-01", 0.0, 1.0)], tmp_path / "two.mp4")
    assert [each.path.name for each in both] == ["two-1.mp4", "two-2.mp4"]
    (joined,) = export_joined(opened, ranges, tmp_path / "folder")
    assert sorted(path.name for path in (tmp_path / "folder").iterdir()) == [MANIFEST, "film-02.mp4"]
    assert joined.path.is_file()
    with pytest.raises(UsageError, match="which is there already"):
        join_clips(opened, ranges, tmp_path / "evidence.mp4")


def test_the_file_of_a_clip_is_checked_before_anything_else(tmp_path: Path) -> None:
    for path, says in ((tmp_path / "a.avi", "a clip is an .mp4"), (tmp_path / "no" / "a.mp4", "whose folder")):
        with pytest.raises(UsageError, match=says):
            check_clip_path(path)
