"""Fixtures of the tests of `index`: an empty library with random vectors, and one of which not every row counts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kinodex.index.library import Library
from kinodex.index.store.database import Tables
from tests.support.libraries.random_library import SETTINGS, MadeVideo, empty_library, fingerprint, made, write


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return empty_library(tmp_path / "library", SETTINGS, fingerprint())


@pytest.fixture
def tables(library: Library) -> Tables:
    return library.tables


VIDEOS = {
    name: made(name * 4, count, number) for number, (name, count) in enumerate({"a": 9, "b": 4, "d": 700}.items())
}
ALL = sorted((video.video_id, number) for video in VIDEOS.values() for number in range(len(video.vectors)))


def write_in_parts(library: Library, videos: list[MadeVideo], part: int) -> None:
    """Append the frames of videos in turns, as workers that read them side by side."""
    longest = max(len(video.vectors) for video in videos)
    for first in range(0, longest, part):
        library.writer.add_frames({video.video_id: video.frame_rows()[first : first + part] for video in videos})
    assert library.writer.complete([video.video_row() for video in videos]) == ()


@pytest.fixture(scope="session")
def patchy_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Complete videos `ALL` in several files, half a video, a deleted one, and rows of one that are there twice."""
    folder = tmp_path_factory.mktemp("patchy") / "library"
    library = Library.create(str(folder), SETTINGS, fingerprint())
    write(library, made("eeee", 6, 8))
    write_in_parts(library, [VIDEOS["a"], VIDEOS["d"]], 300)
    write(library, made("cccc", 5, 9), complete=False)
    write(library, VIDEOS["b"])
    library.writer.discard("eeee")
    library.writer.add_frames({"aaaa": VIDEOS["a"].frame_rows()[3:6]})  # a second run that writes it again
    return folder


@pytest.fixture
def patchy(patchy_folder: Path, tmp_path: Path) -> Library:
    """The same for a test that may change it."""
    return Library.open(str(shutil.copytree(patchy_folder, tmp_path / "patchy")))
