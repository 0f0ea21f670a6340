"""A file that anybody wrote to has another state, even if its size and time of change are put back."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kinodex.pipeline.errors import SourceChanged, SourceMissing
from kinodex.pipeline.fetch import Source, check_unchanged, differ_by_inode_alone, file_state, identify


def swap(path: Path) -> None:
    other = path.with_name("other.mp4")
    other.write_bytes(b"other")
    os.utime(other, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    other.replace(path)


def write_in_place_and_put_the_time_back(path: Path) -> None:
    before = path.stat()
    path.write_bytes(b"other")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def swap_and_put_back(path: Path) -> None:
    kept = path.rename(path.with_name("kept.mp4"))
    path.write_bytes(b"other")
    kept.replace(path)


def append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


CHANGES = [swap, write_in_place_and_put_the_time_back, swap_and_put_back, append]


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_shows(tmp_path: Path, change: Callable[[Path], None]) -> None:
    path = tmp_path / "film.mp4"
    path.write_bytes(b"first")
    video = identify(Source(str(path), "film"), tmp_path)
    check_unchanged(video)
    wait_for_another_tick(path)
    change(path)
    with pytest.raises(SourceChanged, match=r"film\.mp4: the file was changed or replaced while it was read"):
        check_unchanged(video)


def wait_for_another_tick(path: Path) -> None:
    """Touch a file beside this one until the kernel's clock, which stamps files, has moved on."""
    probe = path.with_name("clock")
    while True:
        probe.write_bytes(b"")
        if probe.stat().st_ctime_ns > path.stat().st_ctime_ns:
            return


def test_a_file_that_is_gone_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "film.mp4"
    path.write_bytes(b"first")
    video = identify(Source(str(path), "film"), tmp_path)
    path.unlink()
    with pytest.raises(SourceMissing, match="nothing is there"):
        check_unchanged(video)


def test_an_inode_that_alone_differs_leaves_the_bytes_to_decide(tmp_path: Path) -> None:
    path = tmp_path / "film.mp4"
    path.write_bytes(b"first")
    video = identify(Source(str(path), "film"), tmp_path)
    (state,) = video.states
    renumbered = replace(state, inode=state.inode + 1)
    assert differ_by_inode_alone(renumbered, file_state(path))
    check_unchanged(replace(video, states=(renumbered,)))
    with pytest.raises(SourceChanged):
        check_unchanged(replace(video, states=(renumbered,), video_id="0" * 32))
    assert not differ_by_inode_alone(replace(renumbered, mtime_ns=1), file_state(path))
    assert not differ_by_inode_alone(state, state)


def test_the_stamp_of_a_local_source_is_that_of_the_bytes_that_were_hashed(tmp_path: Path) -> None:
    path = tmp_path / "film.mp4"
    path.write_bytes(b"first")
    stale = replace(Source(str(path), "film"), stamp=None)
    found = identify(stale, tmp_path)
    assert found.source.stamp is not None
    assert (found.source.stamp.size_bytes, found.source.stamp.mark) == (5, str(path.stat().st_mtime_ns))
