"""Alignments: what is the same is found with its ranges; what only looks alike, or stands still, is not the same."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from kinodex.jobs.duplicates import align, shared_parts
from tests.support.duplicates.walks import DIM, shot, timeline, walk

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
    assert stretch.length_s == pytest.approx(30, abs=1.5)


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


def test_parts_around_what_was_cut_out_have_an_offset_each() -> None:
    whole = shot(LONG, 0, 300)
    without_ads = np.concatenate([shot(LONG, 0, 80, noise=0.05), shot(LONG, 110, 200), shot(LONG, 220, 300)])
    found = shared_parts(timeline(whole), timeline(without_ads), 5.0)
    places = sorted((each.ranges[0].start_a_s, each.ranges[-1].end_a_s, each.offset_s) for each in found)
    assert [place[2] for place in places] == pytest.approx([0, -30, -50], abs=0.5)
    ends_s = ((0, 80), (110, 200), (220, 300))
    assert [place[:2] for place in places] == [pytest.approx(each, abs=9.0) for each in ends_s], "to a scene"
    assert len(shared_parts(timeline(whole), timeline(without_ads), 85.0)) == 1, "but for the first they last so long"


def test_a_film_that_is_there_twice_is_found_in_both_places() -> None:
    film = shot(FILM, 0, 60)
    twice = np.concatenate([film, shot(OTHER, 0, 20), shot(FILM, 0, 60, noise=0.05)])
    found = shared_parts(timeline(film), timeline(twice), 5.0)
    assert sorted(each.offset_s for each in found) == pytest.approx([0, 80], abs=0.5)
    assert shared_parts(timeline(film), timeline(shot(OTHER, 0, 60)), 5.0) == []


def test_other_films_are_not_the_same() -> None:
    found = align(timeline(shot(FILM, 0, 60)), timeline(shot(OTHER, 0, 60)))
    assert found is None or not found.is_same


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


def test_a_pair_the_other_way_round_is_the_same_with_the_opposite_offset() -> None:
    part, whole = timeline(shot(FILM, 31.4, 61.4)), timeline(shot(FILM, 0, 120))
    there, back = align(part, whole), align(whole, part)
    assert there is not None and back is not None and back.is_same
    assert back.offset_s == pytest.approx(-there.offset_s, abs=0.5)
