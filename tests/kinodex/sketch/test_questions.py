"""Questions of every kind, each with exactly one true option."""

from __future__ import annotations

import pytest

from kinodex.sketch.scenes import COLOUR_NAMES, NUMBERS, THING_NAMES, Group, Scene, TitleCard
from kinodex.sketch.script import FilmQuestion, Script, Shot, write_questions, write_script
from tests.sketch.vocabulary import PLACES, plural, with_article


def test_every_kind_of_question_is_asked_in_an_hour() -> None:
    questions = write_questions(write_script("film", 3600, 0), "film.mp4", 0)
    kinds = [question.kind for question in questions]
    assert len(kinds) == 60
    assert {question.answer for question in questions} == {0, 1, 2, 3}
    assert set(kinds) == {"needle", "colour", "after", "count", "place", "appears", "title", "first"}


@pytest.mark.parametrize("seed", range(6))
def test_exactly_one_option_is_true(seed: int) -> None:
    for duration_s in (60, 900):
        script = write_script("film", duration_s, seed)
        questions = write_questions(script, "film.mp4", seed)
        for question in questions:
            assert len(set(question.options)) == 4
            true = [option for option in question.options if is_true(script, question, option)]
            assert true == [question.options[question.answer]], question


def test_needles_are_tagged_by_the_length_of_their_evidence() -> None:
    script = write_script("film", 3600, 1)
    questions = write_questions(script, "film.mp4", 1)
    for question in questions:
        shot = next(shot for shot in script.shots if (shot.start_s, shot.end_s) == question.evidence)
        assert (question.kind == "needle") == shot.needle
    assert sum(question.kind == "needle" for question in questions) >= 5


def things(shot: Shot) -> set[str]:
    return {group.thing for group in groups(shot)}


def groups(shot: Shot) -> tuple[Group, ...]:
    return shot.scene.groups if isinstance(shot.scene, Scene) else ()


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
