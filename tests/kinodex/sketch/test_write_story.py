"""A story fills its film with scenes that last, in places that come again, and follows from its seed."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from kinodex.sketch.script import FPS
from kinodex.sketch.story import write_story


@pytest.mark.parametrize("duration_s", [30, 120, 1800])
def test_shots_fill_the_film(duration_s: int) -> None:
    for seed in range(3):
        film = write_story("film", duration_s, seed)
        assert film.duration_s == duration_s and film.shots[0].first_frame == 0
        for shot, following in pairwise(film.shots):
            assert shot.first_frame + shot.frames == following.first_frame
        assert {shot.scene for shot in film.shots if shot.card is None} == set(range(len(film.scenes)))
        assert sum(shot.card is not None for shot in film.shots) == min(len(film.scenes), 24)
        lines = [line.time for line in film.lines]
        assert all(first[1] <= second[0] for first, second in pairwise(lines))
        assert film.lines and lines[-1][1] <= duration_s


def test_places_last_for_minutes_and_come_again() -> None:
    film = write_story("film", 3600, 2)
    lengths = [scene.time[1] - scene.time[0] for scene in film.scenes]
    assert min(lengths) > 60 and sum(lengths) / len(lengths) > 120
    visits = Counter(scene.setting for scene in film.scenes)
    assert max(visits.values()) > 1 and len(visits) > len(film.scenes) / 2
    assert all(scene.setting != after.setting for scene, after in pairwise(film.scenes))
    in_scenes = Counter(event.who for scene in film.scenes for event in scene.events if event.kind == "enter")
    assert max(in_scenes.values()) > 3, "somebody is met again and again"


def test_events_go_on_over_cuts() -> None:
    """The frames at a shot's border tell of what happens beside it: many movements begin in one shot and end later."""
    film = write_story("film", 1800, 2)
    cuts = [shot.first_frame / FPS for shot in film.shots]
    events = [event for event, _ in film.events()]
    over = [event for event in events if any(event.time[0] < cut < event.time[1] for cut in cuts)]
    assert len(over) > len(events) / 4
    for event in events:
        assert not any(event.moment[0] < cut - 0.5 / FPS and cut + 0.5 / FPS < event.moment[1] for cut in cuts), event


def test_another_seed_is_another_story() -> None:
    assert write_story("film", 60, 1) == write_story("film", 60, 1) != write_story("film", 60, 2)
