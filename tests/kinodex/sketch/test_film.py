"""Story time and screen time."""

from __future__ import annotations

from kinodex.sketch.story import StoryFilm, StoryShot, whole_frames

SHOTS = (StoryShot(0, 24), StoryShot(24, 36), StoryShot(60, 12))


def film(*order: int) -> StoryFilm:
    return StoryFilm("film", 0, "story", tuple(SHOTS[number] for number in order), (), (), {})


def test_story_time_is_screen_time_in_the_order_of_the_story() -> None:
    assert film(0, 1, 2).on_screen((1.0, 5.5)) == [(1.0, 5.5)]
    assert film(0, 1, 2).duration_s == 6.0


def test_a_range_over_a_cut_is_shown_in_pieces_where_the_shots_are_shuffled() -> None:
    assert film(1, 2, 0).on_screen((1.0, 3.0)) == [(0.0, 1.0), (5.0, 6.0)]
    assert film(1, 2, 0).on_screen((5.0, 6.0)) == [(3.0, 4.0)]
    assert film(2, 1, 0).on_screen((9.0, 10.0)) == []


def test_times_are_rounded_to_frames() -> None:
    assert whole_frames(1.03) == 1.0 and whole_frames(1.05) == 13 / 12
