"""A script fills its film, has needles and title cards, and follows from its seed."""

from __future__ import annotations

from itertools import pairwise

import pytest

from kinodex.sketch.scenes import Group, Scene, TitleCard
from kinodex.sketch.script import FPS, Shot, subtitles, write_script


@pytest.mark.parametrize("duration_s", [30, 120, 3600])
def test_a_script_fills_its_film_and_has_needles(duration_s: int) -> None:
    for seed in range(10):
        script = write_script("film", duration_s, seed)
        assert script.shots[0].start_s == 0 and script.duration_s == duration_s
        for shot, following in pairwise(script.shots):
            assert shot.first_frame + shot.frames == following.first_frame
        needles = [shot for shot in script.shots if shot.needle]
        assert len(needles) >= max(1, duration_s // 300)
        for needle in needles:
            assert 2 * FPS <= needle.frames <= 4 * FPS
            assert sum(bool(things(needle) & things(shot)) for shot in script.shots) == 1
        cards = [shot.scene.word for shot in script.shots if isinstance(shot.scene, TitleCard)]
        assert len(cards) == len(set(cards)) >= 1


def test_another_seed_is_another_script() -> None:
    assert write_script("film-01", 60, 1) == write_script("film-01", 60, 1) != write_script("film-01", 60, 2)


def test_spoken_lines_become_subtitles() -> None:
    script = write_script("film", 90, 2, spoken=True)
    blocks = subtitles(script).strip().split("\n\n")
    assert len(blocks) == len(script.lines) == 3
    assert [block.splitlines()[2] for block in blocks] == [line.text for line in script.lines]
    first = script.lines[0]
    times = f"00:00:{first.start_s:06.3f} --> 00:00:{first.end_s:06.3f}".replace(".", ",")
    assert blocks[0].splitlines()[1] == times
    assert subtitles(write_script("film", 90, 2)) == ""


def things(shot: Shot) -> set[str]:
    return {group.thing for group in groups(shot)}


def groups(shot: Shot) -> tuple[Group, ...]:
    return shot.scene.groups if isinstance(shot.scene, Scene) else ()
