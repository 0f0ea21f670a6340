"""Independent films: scripts, their questions with one true option each, and the files."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import av
import numpy as np
import pytest

from tests.sketch.vocabulary import PLACES, plural, with_article
from tests.world.sketch.questions import FilmQuestion, write_questions
from tests.world.sketch.render import draw_frames
from tests.world.sketch.scenes import COLOUR_NAMES, NUMBERS, THING_NAMES, Group, Scene, TitleCard
from tests.world.sketch.script import FPS, HEIGHT_PX, WIDTH_PX, Script, Shot, subtitles, write_script


def test_a_script_fills_its_film_and_has_needles() -> None:
    for duration_s, seed in ((30, 0), (30, 1), (120, 0), (120, 1), (3600, 0)):
        script = write_script("film", duration_s, seed)
        assert script == write_script("film", duration_s, seed) != write_script("film", duration_s, seed + 1)
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


@pytest.mark.slow
def test_every_kind_of_question_is_asked_and_exactly_one_option_is_true() -> None:
    for duration_s, seed in ((60, 0), (60, 1), (900, 2), (900, 3), (3600, 1)):
        script = write_script("film", duration_s, seed)
        questions = write_questions(script, "film.mp4", seed)
        for question in questions:
            assert len(set(question.options)) == 4
            true = [option for option in question.options if is_true(script, question, option)]
            assert true == [question.options[question.answer]], question
            shot = next(shot for shot in script.shots if (shot.start_s, shot.end_s) == question.evidence)
            assert (question.kind == "needle") == shot.needle
    kinds = [question.kind for question in questions]
    assert len(kinds) == 60 and kinds.count("needle") >= 5
    assert {question.answer for question in questions} == {0, 1, 2, 3}
    assert set(kinds) == {"needle", "colour", "after", "count", "place", "appears", "title", "first"}


def place_of(shot: Shot) -> str:
    return PLACES[shot.scene.place][0] if isinstance(shot.scene, Scene) else ""


def names_of(group: Group) -> set[str]:
    """List the names that a shot's group may have in an option."""
    names = {with_article(f"{group.colour} {group.thing}")}
    if group.count > 1:
        names.add(f"{NUMBERS[group.count]} {group.colour} {plural(group.thing)}")
    return names


def is_true(script: Script, question: FilmQuestion, option: str) -> bool:
    """Check an option of a question by its words alone, against the whole script."""
    text = question.question
    if question.asks in ("appears", "first"):
        where = [
            index for index, shot in enumerate(script.shots) if any(option in names_of(each) for each in groups(shot))
        ]
        if question.asks == "appears":
            return bool(where)
        others = [
            index
            for index, shot in enumerate(script.shots)
            if any(names_of(each) & set(question.options) for each in groups(shot))
        ]
        return min(others) in where
    if question.asks in ("after", "title"):
        moments = [index for index, shot in enumerate(script.shots) if is_named(text, shot)]
        assert len(moments) == 1, (text, moments)
        following = script.shots[moments[0] + 1]
        if isinstance(following.scene, TitleCard):
            return option == following.scene.word
        return any(option in names_of(each) for each in groups(following))
    named = [
        (shot, each) for shot in script.shots for each in groups(shot) if asks_about(text, question.asks, shot, each)
    ]
    assert len(named) == 1, (text, named)
    shot, group = named[0]
    facts = {"colour": group.colour, "count": NUMBERS[group.count], "place": place_of(shot)}
    return option == facts[question.asks]


def is_named(text: str, shot: Shot) -> bool:
    if isinstance(shot.scene, TitleCard):
        return f"card {shot.scene.word}" in text
    return any(
        f"the {group.colour} {noun} {place_of(shot)}" in text
        for group in groups(shot)
        for noun in (group.thing, plural(group.thing))
    )


def asks_about(text: str, asks: str, shot: Shot, group: Group) -> bool:
    words = text.rstrip("?").split()
    noun = next(name for name in THING_NAMES if name in words or plural(name) in words)
    colour = next((name for name in COLOUR_NAMES if name in words), None)
    in_place = asks == "place" or text.rstrip("?").endswith(place_of(shot))
    return group.thing == noun and (colour is None or group.colour == colour) and in_place


@pytest.mark.slow
def test_encoded_times_are_the_scripts(films: Path) -> None:
    """Every shot's first frame is at start_s in the file, shows the shot, and the next shot begins at end_s."""
    script = write_script("film-02", 30, 3)
    with av.open(str(films / "film-02.mp4")) as container:
        frames = list(container.decode(video=0))
    times = [frame.time for frame in frames]
    assert times == [number / FPS for number in range(len(times))]
    assert len(times) == round(script.duration_s * FPS)
    for shot, following in zip(script.shots, [*script.shots[1:], None], strict=True):
        assert shot.start_s in times
        assert following is None or following.start_s == shot.end_s
    for frame, drawn in zip(frames, draw_frames(script), strict=True):
        assert np.abs(frame.to_ndarray(format="rgb24").astype(int) - drawn).mean() < 8


@pytest.mark.slow
def test_dissolves_fades_and_motion_are_drawn() -> None:
    red, blue = (Scene(place, groups=(Group("ball", "red"),)) for place in ("desert", "city"))
    script = Script(
        "film",
        0,
        (
            Shot(0, 24, red, "right"),
            Shot(24, 24, blue, entry="dissolve"),
            Shot(48, 24, TitleCard("ECHO"), entry="black"),
        ),
    )
    frames = [frame.astype(float) for frame in draw_frames(script)]
    assert len(frames) == 72 and frames[0].shape == (HEIGHT_PX, WIDTH_PX, 3)
    moved = [np.abs(frame - frames[0]).mean() for frame in frames[:24]]
    assert moved[23] > moved[6] > 0
    assert np.abs(frames[24] - frames[23]).mean() < np.abs(frames[30] - frames[23]).mean()
    assert frames[48].mean() < frames[60].mean()
    sparse = list(draw_frames(script, 5))  # of which two lie in fades
    assert [np.abs(frame - frames[5 * at]).mean() < 1 for at, frame in enumerate(sparse)] == [True] * 15
