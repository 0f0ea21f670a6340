"""Diagonals: the offset and the speed that most frames vote for."""

from __future__ import annotations

import pytest

from kinodex.jobs.duplicates import BEST_ALL, find_diagonals
from tests.support.duplicates.walks import shot, timeline, walk


@pytest.mark.parametrize("start_s", [0.0, 12.0, 41.5])
def test_a_part_votes_for_its_place_in_the_whole(start_s: float) -> None:
    film = walk(90, 1)
    part, whole = timeline(shot(film, start_s, start_s + 30, noise=0.05)), timeline(shot(film, 0, 90))
    best, *_ = found = find_diagonals(part, whole)
    assert best.speed == 1.0
    assert best.offset_s == pytest.approx(start_s, abs=0.75)
    assert len(found) <= BEST_ALL
    assert [each.votes for each in found] == sorted((each.votes for each in found), reverse=True)


def test_a_film_at_another_speed_votes_for_it_where_it_lasts() -> None:
    film = walk(240, 2)
    plain = timeline(shot(film, 0, 240))
    assert find_diagonals(timeline(shot(film, 0, 240, speed=25 / 24)), plain)[0].speed == 25 / 24
    assert find_diagonals(plain, timeline(shot(film, 0, 240, speed=25 / 24)))[0].speed == 24 / 25


def test_in_a_few_frames_speeds_cannot_be_told_apart_and_one_is_taken() -> None:
    film = walk(40, 3)
    found = find_diagonals(timeline(shot(film, 0, 40, speed=25 / 24)), timeline(shot(film, 0, 40)))
    assert {each.speed for each in found} == {1.0}


def test_a_video_of_one_frame_is_no_error() -> None:
    film = walk(20, 4)
    assert find_diagonals(timeline(shot(film, 3, 4)), timeline(shot(film, 0, 20)))[0].offset_s == pytest.approx(
        3, abs=1
    )
