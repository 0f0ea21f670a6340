"""Questions of the order of the story: asked where the film has one answer, and not where it has two."""

from __future__ import annotations

from random import Random

from kinodex.sketch import story_questions
from kinodex.sketch.story import Event, StoryFilm
from kinodex.sketch.story_questions import Facts, Maker
from tests.support.stories.made_story import AT_HOUSE, AT_TENT, BUSES, CAT, DOG, DUCK, HAT, HORSE, KEY, event, story

ENTRIES = [event("enter", each, 3.0) for each in (DOG, CAT, DUCK, HORSE)]
AWAY = [*ENTRIES, event("leave", CAT, 10.0, back_at_s=40.0), event("return", CAT, 40.0, KEY)]


def answers(make: Maker, *scenes: list[Event]) -> dict[str, str]:
    return {draft.text: draft.right for draft in make(Facts(_film(*scenes)), Random(1))}


def _film(*scenes: list[Event]) -> StoryFilm:
    return story(*zip((AT_HOUSE, AT_TENT, AT_HOUSE), scenes, strict=False))


def test_who_comes_back_with_what() -> None:
    text = "Who goes away from the green house and comes back a little later?"
    assert answers(story_questions.comes_back, AWAY) == {text: "the red cat"}
    assert answers(story_questions.brings, AWAY) == {
        "What does the red cat bring when it comes back to the green house?": "a white key"
    }
    both = [*AWAY, event("leave", DOG, 50.0, back_at_s=60.0), event("return", DOG, 60.0)]
    assert answers(story_questions.comes_back, both) == {}, "two come back"
    assert answers(story_questions.comes_back, AWAY, [], AWAY) == {}, "the house is seen in two scenes"
    kept = [*ENTRIES, event("leave", CAT, 10.0, KEY, back_at_s=40.0), event("return", CAT, 40.0, KEY)]
    assert answers(story_questions.brings, kept) == {}, "it had the key before"


def test_what_passes_while_one_is_away() -> None:
    text = "What passes by while the red cat is away from the green house?"
    assert answers(story_questions.meanwhile, [*AWAY, event("pass", BUSES[0], 20.0)]) == {text: "a green bus"}
    two = [*AWAY, event("pass", BUSES[0], 20.0), event("pass", BUSES[1], 30.0)]
    assert answers(story_questions.meanwhile, two) == {}
    partly = [*AWAY, event("pass", BUSES[0], 20.0), event("pass", BUSES[1], 39.0)]
    assert answers(story_questions.meanwhile, partly) == {}, "the second begins before the return"


def test_first_last_and_counts() -> None:
    passes = [event("pass", bus, 10.0 * number + 10) for number, bus in enumerate((*BUSES, BUSES[0]))]
    assert answers(story_questions.first, passes) == {"Which of these passes by first in the film?": "a green bus"}
    assert answers(story_questions.count, passes) == {
        "Which of these passes by exactly two times in the film?": "a green bus"
    }
    assert answers(story_questions.count, [*passes, *passes]) == {
        "Which of these passes by exactly two times in the film?": "a red bus",
        "Which of these passes by exactly four times in the film?": "a green bus",
    }, "no number is asked for that a guess without the film would name"
    gives = [event("give", CAT, 10.0 * number + 10, bus, DOG) for number, bus in enumerate(BUSES)]
    assert answers(story_questions.last, gives) == {"Which of these is handed over last in the film?": "a blue bus"}
    drafts = [
        *story_questions.first(Facts(_film(passes)), Random(1)),
        *story_questions.last(Facts(_film(gives)), Random(1)),
    ]
    assert all(draft.ordered and len(draft.wrong) == 3 for draft in drafts)


def test_who_has_a_thing_in_the_end() -> None:
    gives = [
        event("give", CAT, 10.0, KEY, DOG),
        event("give", DOG, 20.0, KEY, DUCK),
        event("give", CAT, 30.0, HAT, DOG),
    ]
    text = "Who has the white key in the end?"
    assert answers(story_questions.holder, [*ENTRIES, *gives]) == {text: "the white duck"}, "the hat changed hands once"
    assert answers(story_questions.holder, [*ENTRIES, *gives, event("put", DUCK, 40.0, KEY)]) == {}, "nobody has it"
