"""The weights of the package find what is shown in a story's frames."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kinodex.sketch.story import write_story
from tests.sketch.score_story import EVERY_S, _ranked, frames_with, score_story


def test_every_name_has_the_frames_in_which_it_is_seen() -> None:
    film = write_story("film", 300, 1)
    truth = frames_with(film)
    cards = {name: frames for (role, name), frames in truth.items() if role == "title card"}
    assert cards == {
        shot.card.word: {n for n in range(100) if shot.time[0] <= n * EVERY_S < shot.time[1]}
        for shot in film.shots
        if shot.card
    }
    places = [frames for (role, _), frames in truth.items() if role == "place"]
    assert sorted(set[int]().union(*places, *cards.values())) == list(range(100))
    assert {role for role, _ in truth} >= {"actor", "passer", "place", "title card"}
    for event, _ in film.events():
        if event.kind == "enter" and ("actor", event.who.name) in truth:
            assert min(truth["actor", event.who.name]) * EVERY_S >= min(
                other.time[0] for other, _ in film.events() if other.who == event.who and other.kind == "enter"
            )


def test_ranks_become_recall_and_area() -> None:
    scores = np.array([0.9, 0.1, 0.8, 0.2], np.float32)
    assert _ranked(scores, {0, 2}) == (True, True, 1.0)
    assert _ranked(scores, {1, 3}) == (False, True, 0.0)
    assert _ranked(scores, {0, 1}) == (True, True, 0.5)
    assert _ranked(scores, {0, 1, 2, 3}) is None


def test_actors_and_places_are_found(root: Path) -> None:
    scores = score_story(root / "index" / "spaces" / "builtin", films=1, duration_s=120.0, seed=3)
    assert scores["place"]["auc"] > 0.9 and scores["actor"]["auc"] > 0.75
    assert all(0 <= each["recall_at_1"] <= each["recall_at_5"] <= 1 for each in scores.values())
