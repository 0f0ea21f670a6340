"""Questions about text on screen: their evidence is the time in which it can be read."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from kinodex.sketch import story_questions
from kinodex.sketch.story import View
from kinodex.sketch.story_questions import Facts
from tests.support.stories.made_story import AT_HOUSE, AT_TENT, story

FILM = story((AT_HOUSE, []), (AT_TENT, []))


def test_a_sign_and_what_stands_beside_it() -> None:
    (sign,) = story_questions.sign(Facts(FILM), Random(1))
    assert (sign.text, sign.right) == ("What does the sign beside the green house say?", "HOTEL 7")
    assert len(set(sign.wrong)) >= 3 and all(each.startswith("HOTEL ") for each in sign.wrong)
    assert sign.evidence == ((2.0, 100.0),)
    (beside,) = story_questions.beside(Facts(FILM), Random(1))
    assert (beside.text, beside.right) == ("What stands beside the sign that says HOTEL 7?", "a green house")


def test_a_sign_that_is_never_wholly_in_view_is_not_asked_about() -> None:
    near = replace(FILM.shots[1], view=View(0.42, 0.42, 0.58))
    film = replace(FILM, shots=(FILM.shots[0], near, *FILM.shots[2:]))
    assert (
        list(story_questions.sign(Facts(film), Random(1))) == [] == list(story_questions.beside(Facts(film), Random(1)))
    )


def test_a_title_card_is_named_by_the_scene_after_it() -> None:
    drafts = list(story_questions.title(Facts(FILM), Random(1)))
    assert [(draft.right, draft.evidence) for draft in drafts] == [
        ("WORD0", ((0.0, 2.0),)),
        ("WORD1", ((100.0, 102.0),)),
    ]
    again = story((AT_HOUSE, []), (AT_TENT, []), (AT_HOUSE, []))
    assert [draft.right for draft in story_questions.title(Facts(again), Random(1))] == ["WORD1"]
