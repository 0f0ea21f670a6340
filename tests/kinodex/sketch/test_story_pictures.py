"""Questions of who gives what to whom: asked where the film has one answer, and not where it has two."""

from __future__ import annotations

from random import Random

from kinodex.sketch import story_questions
from kinodex.sketch.story import StoryFilm
from kinodex.sketch.story_questions import Facts, Maker
from tests.support.stories.made_story import AT_HOUSE, AT_TENT, CAT, DOG, DUCK, HAT, HORSE, KEY, event, story

ENTRIES = [event("enter", each, 3.0) for each in (CAT, DOG, DUCK, HORSE)]
ONCE = story((AT_HOUSE, [*ENTRIES, event("give", CAT, 20.0, KEY, DOG)]))
TWICE = story(
    (AT_HOUSE, [*ENTRIES, event("give", CAT, 20.0, KEY, DOG), event("give", CAT, 40.0, HAT, DOG)]),
    (AT_TENT, [event("give", DUCK, 120.0, KEY, DOG), event("give", CAT, 140.0, KEY, HORSE)]),
)


def answers(make: Maker, film: StoryFilm) -> dict[str, str]:
    return {draft.text: draft.right for draft in make(Facts(film), Random(1))}


def test_one_who_gives_is_asked_about() -> None:
    assert answers(story_questions.giver, ONCE) == {"Who gives the white key to the blue dog?": "the red cat"}
    assert answers(story_questions.receiver, ONCE) == {"Who gets the white key from the red cat?": "the blue dog"}
    assert answers(story_questions.given, ONCE) == {"What does the red cat give to the blue dog?": "a white key"}
    assert answers(story_questions.given_where, ONCE) == {
        "Where does the red cat give the white key away?": "in the city"
    }
    (draft,) = story_questions.giver(Facts(ONCE), Random(1))
    assert draft.evidence == ((22.0, 23.0),) and not draft.ordered
    assert draft.wrong == ("the white duck", "the pink horse"), "neither the one who gives nor the one who gets it"


def test_what_has_two_answers_is_not_asked() -> None:
    assert "Who gives the white key to the blue dog?" not in answers(story_questions.giver, TWICE)
    assert "Who gets the white key from the red cat?" not in answers(story_questions.receiver, TWICE)
    assert "What does the red cat give to the blue dog?" not in answers(story_questions.given, TWICE)
    assert "Where does the red cat give the white key away?" not in answers(story_questions.given_where, TWICE)
    assert answers(story_questions.giver, TWICE) == {
        "Who gives the black hat to the blue dog?": "the red cat",
        "Who gives the white key to the pink horse?": "the red cat",
    }


def test_who_picks_up_what_lies_there() -> None:
    enters = [event("enter", CAT, 3.0, KEY), *ENTRIES[1:]]
    film = story((AT_HOUSE, [*enters, event("put", CAT, 20.0, KEY), event("take", DUCK, 40.0, KEY, CAT)]))
    assert answers(story_questions.taker, film) == {"Who picks up the white key from the ground?": "the white duck"}
    assert answers(story_questions.taker, ONCE) == {}
