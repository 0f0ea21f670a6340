"""Shots: cuts keep off what must be seen whole, and a view holds all that happens in it."""

from __future__ import annotations

from kinodex.sketch.story import ASPECT, CLOSEST, View, in_view, landmark_box, position, sign_box, write_story


def test_a_view_holds_all_who_do_something_in_it() -> None:
    film = write_story("film", 600, 4)
    views = set()
    for shot in film.shots:
        if shot.scene is None:
            continue
        scene, view = film.scenes[shot.scene], shot.view
        views.add(view.width)
        assert CLOSEST <= view.width <= 1 and view.left + view.width <= 1.001 and view.top + view.width <= 1.001
        if not any(event.time[0] < shot.time[1] and shot.time[0] < event.time[1] for event in scene.events):
            continue
        for track in scene.tracks:
            key = position(track, sum(shot.time) / 2)
            if key is not None and 0.05 < key.x < 0.95:
                half = key.side / ASPECT / 2
                box = (
                    max(0.0, key.x - half),
                    key.y - key.side / 2,
                    min(1.0, key.x + half),
                    min(1.0, key.y + key.side / 2),
                )
                assert in_view(box, view), (shot, track.prop)
    assert len(views) > 4


def test_shots_are_neither_short_nor_endless() -> None:
    film = write_story("film", 1800, 4)
    lengths = [shot.frames / 12 for shot in film.shots if shot.card is None]
    assert min(lengths) >= 3 and max(lengths) < 30 and 6 < sum(lengths) / len(lengths) < 12


def test_signs_stand_beside_landmarks_and_on_the_stage() -> None:
    settings = {scene.setting for scene in write_story("film", 3600, 5).scenes}
    for setting in settings:
        board, landmark = sign_box(setting), landmark_box(setting)
        assert (board is None) == (setting.sign is None)
        if board is not None:
            assert board[0] > 0 and board[2] < 1
            assert board[2] <= landmark[0] + 0.02 or landmark[2] <= board[0] + 0.02
    assert in_view((0.2, 0.2, 0.4, 0.4), View(0.0, 0.0, 0.5)) == (0.4, 0.4, 0.8, 0.8)
    assert in_view((0.2, 0.2, 0.6, 0.4), View(0.0, 0.0, 0.5)) is None
