"""Frames of a story: every one there, things where the script has them, and signs where their boxes are."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np

from kinodex.sketch.scenes import TitleCard
from kinodex.sketch.script import HEIGHT_PX, WIDTH_PX
from kinodex.sketch.story import (
    Prop,
    Setting,
    StoryFilm,
    StoryScene,
    StoryShot,
    Track,
    View,
    actor_key,
    draw_frames,
    draw_setting,
    render_story,
    text_box,
)

SETTING = Setting("meadow", False, Prop("house", "red"), 0.2, "HOTEL 7", 0.445, 3)
CAT = Prop("cat", "black")
WALK = Track(CAT, (actor_key(CAT, 1.0, 0.2, 0.0), actor_key(CAT, 3.0, 0.8, 0.0)))


def film() -> StoryFilm:
    shots = (StoryShot(0, 12, card=TitleCard("ECHO")), StoryShot(12, 36, 0))
    return StoryFilm("film", 0, "story", shots, (StoryScene(SETTING, (1.0, 4.0), (WALK,), ()),), (), {})


def test_things_move_come_and_go() -> None:
    frames = [frame.astype(int) for frame in draw_frames(film())]
    assert len(frames) == 48 and frames[0].shape == (HEIGHT_PX, WIDTH_PX, 3)
    empty = np.asarray(draw_setting(SETTING, View())).astype(int)
    columns = [np.abs(frames[number] - empty).sum(axis=(0, 2)) for number in (12, 35)]
    middles = [float((np.arange(WIDTH_PX) * column).sum() / column.sum() / WIDTH_PX) for column in columns]
    assert abs(middles[0] - 0.2) < 0.03 and abs(middles[1] - 0.775) < 0.03
    assert not np.abs(frames[36] - empty).any(), "the cat is gone at 3 s"
    sparse = list(draw_frames(film(), 10))
    assert [np.array_equal(frame, frames[10 * at]) for at, frame in enumerate(sparse)] == [True] * 5


def test_a_near_view_is_a_part_of_the_stage_drawn_larger() -> None:
    view = View(0.0, 0.2, 0.6)
    board, near = text_box(SETTING, View()), text_box(SETTING, view)
    assert board is not None and near is not None
    assert near[2] - near[0] > 1.6 * (board[2] - board[0])
    picture = np.asarray(draw_setting(SETTING, view))
    left, top, right, bottom = (round(each * side) for each, side in zip(near, (WIDTH_PX, HEIGHT_PX) * 2, strict=True))
    inside = picture[top + 6 : bottom - 6, left + 6 : right - 6].reshape(-1, 3)
    assert (inside.min(axis=1) > 200).mean() > 0.5 and (inside.max(axis=1) < 80).mean() > 0.05, "ink on a pale board"
    assert text_box(SETTING, View(0.4, 0.0, 0.6)) is None


def test_a_film_is_encoded(tmp_path: Path) -> None:
    told: list[int] = []
    render_story(film(), tmp_path / "film.mp4", told.append)
    with av.open(str(tmp_path / "film.mp4")) as container:
        assert sum(1 for _ in container.decode(video=0)) == 48 == len(told)
