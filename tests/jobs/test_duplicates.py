"""Near-duplicates: what is the same is found with its ranges; what only looks alike, or stands still, is not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from kinodex.index.library import Library
from kinodex.jobs.duplicates.alignment import align, shared_parts
from kinodex.jobs.duplicates.search import find_duplicates
from kinodex.jobs.duplicates.timelines import read_mean, read_timeline
from kinodex.jobs.errors import UsageError
from tests.support.duplicates.walks import DIM, shot, timeline, walk
from tests.support.libraries.random_library import SETTINGS, MadeVideo, fingerprint, made, write
from tests.support.libraries.text_library import text_library
from tests.world.drawn_space import DRAWN

FILM, OTHER = walk(120, 11), walk(120, 12)
LONG = np.concatenate([walk(60, seed) for seed in range(13, 18)])


def test_a_copy_with_noise_is_the_same_all_along() -> None:
    found = align(timeline(shot(FILM, 0, 60)), timeline(shot(FILM, 0, 60, noise=0.08)))
    assert found is not None and found.is_same
    assert (found.speed, found.share) == (1.0, 1.0)
    assert found.offset_s == pytest.approx(0.0, abs=0.3)
    assert found.agreement > 0.8


def test_a_cut_between_two_samples_has_its_ranges_in_both() -> None:
    found = align(timeline(shot(FILM, 31.4, 61.4), start_s=100.0), timeline(shot(FILM, 0, 120)))
    assert found is not None and found.is_same
    (stretch,) = found.ranges
    assert found.offset_s == pytest.approx(31.4 - 100.0, abs=0.5)
    assert (stretch.start_a_s, stretch.end_a_s) == pytest.approx((100, 130), abs=1.0)
    assert (stretch.start_b_s, stretch.end_b_s) == pytest.approx((31.4, 61.4), abs=1.0)
    assert found.length_s == pytest.approx(30, abs=1.5)
    back = align(timeline(shot(FILM, 0, 120)), timeline(shot(FILM, 31.4, 61.4), start_s=100.0))
    assert back is not None and back.is_same
    assert back.offset_s == pytest.approx(-found.offset_s, abs=0.5)


def test_a_part_of_a_mix_is_found_where_it_is() -> None:
    mix = np.concatenate([shot(OTHER, 0, 20), shot(FILM, 50, 75), shot(OTHER, 60, 80)])
    found = align(timeline(mix), timeline(shot(FILM, 0, 120)))
    assert found is not None and found.is_same
    (stretch,) = found.ranges
    assert (stretch.start_a_s, stretch.end_a_s) == pytest.approx((20, 45), abs=2.0)
    assert found.offset_s == pytest.approx(30, abs=0.5)


def test_another_speed_is_told() -> None:
    found = align(timeline(shot(FILM, 0, 120, speed=25 / 24)), timeline(shot(FILM, 0, 120)))
    assert found is not None and found.is_same
    assert found.speed == 25 / 24
    assert found.ranges[-1].end_b_s == pytest.approx(120, abs=2.0)


@pytest.mark.parametrize("speed", [1.1, 1 / 1.1])
def test_a_speed_that_nobody_votes_for_is_told_by_the_drift_of_the_offset(speed: float) -> None:
    found = align(timeline(shot(LONG, 0, 300, speed=speed)), timeline(shot(LONG, 0, 300)))
    assert found is not None and found.is_same
    assert found.speed == pytest.approx(speed, rel=0.01)
    assert (found.ranges[0].start_b_s, found.ranges[-1].end_b_s) == pytest.approx((0, 300), abs=8.0)
    middle = found.speed * 100 + found.offset_s
    assert middle == pytest.approx(100 * speed, abs=1.0), "times in between are right too"


@pytest.mark.parametrize(("cut_s", "lost_s"), [(45, 6), (60, 10)])
def test_a_cut_is_not_taken_for_another_speed(cut_s: int, lost_s: int) -> None:
    whole = shot(FILM, 0, 120)
    cut = np.concatenate([whole[:cut_s], whole[cut_s + lost_s :]])
    found = shared_parts(timeline(whole), timeline(cut), 5.0)
    assert {each.speed for each in found} == {1.0}
    assert sorted(each.offset_s for each in found) == pytest.approx([-lost_s, 0], abs=0.5)
    faster = timeline(shot(FILM, 0, 120, speed=25 / 24))
    (whole_film,) = shared_parts(faster, timeline(whole), 5.0)
    assert whole_film.speed == 25 / 24


def test_a_film_that_is_there_twice_is_found_in_both_places() -> None:
    film = shot(FILM, 0, 60)
    twice = np.concatenate([film, shot(OTHER, 0, 20), shot(FILM, 0, 60, noise=0.05)])
    found = shared_parts(timeline(film), timeline(twice), 5.0)
    assert sorted(each.offset_s for each in found) == pytest.approx([0, 80], abs=0.5)
    assert shared_parts(timeline(film), timeline(shot(OTHER, 0, 60)), 5.0) == []


def test_another_recording_by_the_same_fixed_camera_is_alike_and_not_the_same() -> None:
    room = 3 * np.ones(DIM, np.float32) / DIM**0.5
    one, other = (shot(film + room, 0, 60) for film in (FILM, OTHER))
    found = align(timeline(one), timeline(other))
    assert found is not None and found.likeness > 0.8
    assert not found.is_same
    copy = align(timeline(one), timeline(shot(FILM + room, 0, 60, noise=0.02)))
    assert copy is not None and copy.is_same


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_stills_and_one_change_between_two_stills_prove_nothing(noise: float) -> None:
    card, black = shot(FILM, 0, 1), shot(OTHER, 0, 1)
    rng = np.random.default_rng(5)

    def film(*pictures: NDArray[np.float32]) -> NDArray[np.float32]:
        frames: NDArray[np.float32] = np.concatenate([np.repeat(picture, 10, axis=0) for picture in pictures])
        grain: NDArray[np.float32] = noise * rng.standard_normal(frames.shape).astype(np.float32)
        return frames + grain

    for pictures in ((card,), (black, card)):
        found = align(timeline(film(*pictures)), timeline(film(*pictures)))
        assert found is None or not found.is_same, "identical, but nothing happens in it"


def test_timelines_of_a_library(tmp_path: Path) -> None:
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    videos = [made("a", 3, 1), made("b", 9, 2)]
    for video in videos:
        write(library, video)
    mean = read_mean(library, ["b", "a"], None)
    each = [video.vectors.astype(np.float32).mean(axis=0) for video in videos]
    assert mean == pytest.approx(np.mean(each, axis=0), abs=1e-3), "each video counts once, however long"
    line = read_timeline(library, "a", None, mean)
    assert line.times_s.tolist() == [0.0, 1.0, 2.0]
    assert np.linalg.norm(line.units, axis=1) == pytest.approx(np.ones(3))


WHOLE, STRANGE = walk(90, 1), walk(90, 2)
VIDEOS = {
    "whole": (shot(WHOLE, 0, 90), 0.0),
    "cut": (shot(WHOLE, 25, 65, noise=0.05), 500.0),
    "other": (shot(STRANGE, 0, 60), 0.0),
    "still": (np.repeat(shot(WHOLE, 40, 41), 20, axis=0), 0.0),
    "still again": (np.repeat(shot(WHOLE, 40, 41), 30, axis=0), 0.0),
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    library = Library.create(str(tmp_path_factory.mktemp("duplicates") / "library"), SETTINGS, fingerprint(dim=DIM))
    for name, (units, start_s) in VIDEOS.items():
        write(library, MadeVideo(name.replace(" ", "-"), units.astype(np.float16), start_s=start_s), name)
    return library


@pytest.mark.slow
@pytest.mark.parametrize("in_memory_frames", [10_000, 1])
def test_a_cut_is_found_with_its_place(library: Library, in_memory_frames: int) -> None:
    said: list[tuple[str, int, int]] = []
    (found,) = find_duplicates(
        library, in_memory_frames=in_memory_frames, progress=lambda what, done, of: said.append((what, done, of))
    )
    assert ("searching frames of videos", 5, 5) in said
    assert (said[-1][0], said[-1][1]) == ("aligning pairs", said[-1][2])
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
    for min_s, every_s in ((0.0, 30.0), (5.0, -1.0), (float("nan"), 30.0)):
        with pytest.raises(UsageError, match="give more than 0"):
            find_duplicates(library, min_s=min_s, every_s=every_s)


def test_a_video_of_text_alone_cannot_be_compared(tmp_path: Path) -> None:
    made = text_library(tmp_path / "library", {"talk": [(0.0, 5.0, "hello")]}, space=DRAWN)
    assert find_duplicates(Library.create(str(tmp_path / "empty"), SETTINGS, fingerprint(dim=DIM))) == []
    with pytest.raises(UsageError, match="got talk, which was imported as text"):
        find_duplicates(made, [made.video("talk").video_id])
    assert find_duplicates(made) == []


@pytest.mark.parametrize("names", [("a whole", "cut in two"), ("whole", "cut in two")])
def test_a_film_with_its_middle_cut_out_is_shared_whole(tmp_path: Path, names: tuple[str, str]) -> None:
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint(dim=DIM))
    parts = [np.concatenate([shot(WHOLE, 0, 30), shot(WHOLE, 50, 90)]), shot(STRANGE, 0, 60)]
    for name, units in zip((names[0], names[1], "other"), (shot(WHOLE, 0, 90), *parts), strict=True):
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
