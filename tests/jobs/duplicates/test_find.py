"""Near-duplicates of a library: pairs with offsets and ranges in the times of players, by memory and by index."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kinodex.index.library import Library
from kinodex.jobs.duplicates import find_duplicates
from kinodex.jobs.errors import UsageError
from tests.support.duplicates.walks import DIM, shot, walk
from tests.support.libraries.random_library import SETTINGS, MadeVideo, fingerprint, write
from tests.support.libraries.text_library import text_library

FILM, OTHER = walk(90, 1), walk(90, 2)
VIDEOS = {
    "whole": (shot(FILM, 0, 90), 0.0),
    "cut": (shot(FILM, 25, 65, noise=0.05), 500.0),
    "other": (shot(OTHER, 0, 60), 0.0),
    "still": (np.repeat(shot(FILM, 40, 41), 20, axis=0), 0.0),
    "still again": (np.repeat(shot(FILM, 40, 41), 30, axis=0), 0.0),
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    library = Library.create(str(tmp_path_factory.mktemp("duplicates") / "library"), SETTINGS, fingerprint(dim=DIM))
    for name, (units, start_s) in VIDEOS.items():
        write(library, MadeVideo(name.replace(" ", "-"), units.astype(np.float16), start_s=start_s), name)
    return library


@pytest.mark.parametrize("in_memory_frames", [10_000, 1])
def test_a_cut_is_found_with_its_place(library: Library, in_memory_frames: int) -> None:
    (found,) = find_duplicates(library, in_memory_frames=in_memory_frames)
    assert (found.a.title, found.b.title, found.speed) == ("cut", "whole", 1.0)
    assert found.offset_s == pytest.approx(25, abs=0.3), "both counted from 0:00, though the file begins at 500 s"
    (stretch,) = found.ranges
    assert (stretch.start_a_s, stretch.end_a_s) == pytest.approx((0, 40), abs=1.0)
    assert (stretch.start_b_s, stretch.end_b_s) == pytest.approx((25, 65), abs=1.0)
    assert (found.share_a, found.share_b) == pytest.approx((1.0, 40 / 90), abs=0.05)
    assert found.shared_s == pytest.approx(40, abs=1.0)
    assert 0.8 < found.score <= 1.0
    assert (stretch.offset_s, stretch.speed) == (found.offset_s, found.speed)


def test_only_pairs_of_the_named_videos_and_of_some_length(library: Library) -> None:
    assert [each.b.title for each in find_duplicates(library, ["whole"])] == ["whole"]
    assert find_duplicates(library, ["other"]) == []
    assert find_duplicates(library, min_s=45) == []


def test_progress_names_what_is_done(library: Library) -> None:
    said: list[tuple[str, int, int]] = []
    find_duplicates(library, progress=lambda what, done, of: said.append((what, done, of)))
    assert ("searching frames of videos", 5, 5) in said
    assert said[-1][0] == "aligning pairs"
    assert said[-1][1] == said[-1][2]


@pytest.mark.parametrize(("min_s", "every_s"), [(0.0, 30.0), (5.0, -1.0), (float("nan"), 30.0)])
def test_numbers_are_more_than_nothing(library: Library, min_s: float, every_s: float) -> None:
    with pytest.raises(UsageError, match="give more than 0"):
        find_duplicates(library, min_s=min_s, every_s=every_s)


def test_a_video_of_text_alone_cannot_be_compared(tmp_path: Path) -> None:
    made = text_library(tmp_path / "library", {"talk": [(0.0, 5.0, "hello")]}, space="builtin")
    with pytest.raises(UsageError, match="got talk, which was imported as text"):
        find_duplicates(made, [made.video("talk").video_id])
    assert find_duplicates(made) == []


def test_a_library_of_one_video_has_no_pair(tmp_path: Path) -> None:
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint(dim=DIM))
    assert find_duplicates(library) == []
    write(library, MadeVideo("whole", VIDEOS["whole"][0].astype(np.float16)))
    assert find_duplicates(library) == []


@pytest.mark.parametrize("names", [("a whole", "cut in two"), ("whole", "cut in two")])
def test_a_film_with_its_middle_cut_out_is_shared_whole(tmp_path: Path, names: tuple[str, str]) -> None:
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint(dim=DIM))
    parts = [np.concatenate([shot(FILM, 0, 30), shot(FILM, 50, 90)]), shot(OTHER, 0, 60)]
    for name, units in zip((names[0], names[1], "other"), (shot(FILM, 0, 90), *parts), strict=True):
        write(library, MadeVideo(name.replace(" ", "-"), units.astype(np.float16), start_s=100.0), name)
    (found,) = find_duplicates(library)
    whole_first = found.a.title == names[0]
    shares = (found.share_a, found.share_b) if whole_first else (found.share_b, found.share_a)
    assert shares == pytest.approx((70 / 90, 1.0), abs=0.05)
    assert [each.offset_s for each in found.ranges] == pytest.approx([0, -20 if whole_first else 20], abs=0.3)
    assert found.offset_s == found.ranges[1].offset_s, "that of the longer part"
    for each in found.ranges:
        assert each.start_b_s == pytest.approx(each.speed * each.start_a_s + each.offset_s, abs=1e-6)
    assert found.shared_s == pytest.approx(70, abs=2.0)
