"""Shuffled shots are the same shots."""

from __future__ import annotations

from kinodex.sketch.story import shuffle_shots, write_story


def test_all_shots_are_kept_in_an_order_of_their_own() -> None:
    film = write_story("film", 300, 1)
    shuffled = shuffle_shots(film)
    assert shuffled == shuffle_shots(film)
    assert shuffled.shots != film.shots
    assert sorted(shuffled.shots, key=lambda shot: shot.first_frame) == list(film.shots)
    assert (shuffled.form, shuffled.duration_s, shuffled.lines) == ("shuffled", film.duration_s, film.lines)
