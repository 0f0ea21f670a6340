"""Alignments: what is the same is found with its ranges; what only looks alike, or stands still, is not the same."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from jobs.duplicates.alignment import align
from tests.support.duplicates.walks import DIM, shot, timeline, walk

FILM, OTHER = walk(120, 11), walk(120, 12)


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
