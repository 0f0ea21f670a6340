"""Questions about what is said: alone, or with the picture of the same time."""

from __future__ import annotations

from random import Random

from kinodex.sketch import story_questions
from kinodex.sketch.story import Line
from kinodex.sketch.story_questions import Facts
from tests.support.stories.made_story import AT_HOUSE, BUSES, CAT, DOG, KEY, event, story

LINES = (
    Line((5.0, 7.0), "They call me Mara.", "Mara", ("name", "Mara", "red cat")),
    Line((12.0, 14.0), "It is for the choir.", "Mara", ("purpose", "", "the choir")),
    Line((30.0, 32.0), "Any moment now.", "Otto", ("cue", "Any moment now", "")),
    Line((50.0, 52.0), "Next week Otto is off to the coast.", "Mara", ("plan", "Otto", "the coast")),
    Line((60.0, 62.0), "Otto was late, because a wheel broke.", "Mara", ("reason", "Otto", "a wheel broke")),
    Line((70.0, 72.0), "For the attic it is velvet.", "Mara", ("code", "the attic", "velvet")),
)
GIFT, BUS = event("give", CAT, 10.0, KEY, DOG), event("pass", BUSES[0], 32.0, cue="Any moment now")
FACTS = Facts(story((AT_HOUSE, [event("enter", CAT, 3.0), GIFT, BUS]), lines=LINES))


def test_words_alone() -> None:
    drafts = [
        draft
        for make in (story_questions.plan, story_questions.reason, story_questions.code)
        for draft in make(FACTS, Random(1))
    ]
    assert [(draft.text, draft.right, draft.evidence) for draft in drafts] == [
        ("Where does Otto plan to go?", "the coast", ((50.0, 52.0),)),
        ("Why was Otto late?", "a wheel broke", ((60.0, 62.0),)),
        ("What is the code word for the attic?", "velvet", ((70.0, 72.0),)),
    ]
    assert all(draft.needs == "words" and draft.right not in draft.wrong for draft in drafts)


def test_words_and_pictures_of_the_same_time() -> None:
    drafts = [
        draft
        for make in (story_questions.purpose, story_questions.cue, story_questions.who)
        for draft in make(FACTS, Random(1))
    ]
    assert [(draft.text, draft.right, draft.evidence) for draft in drafts] == [
        ("What is the white key for that the blue dog is given, as is said then?", "the choir", (GIFT.moment,)),
        ('What passes by right after somebody says "Any moment now"?', "a green bus", (BUS.moment,)),
        ("Which of these is Mara?", "the red cat", ((5.0, 7.0),)),
    ]
    assert all(draft.needs == "both" and not draft.ordered for draft in drafts)


def test_a_gift_that_is_given_twice_is_not_asked_about() -> None:
    again = event("give", CAT, 80.0, KEY, DOG)
    facts = Facts(story((AT_HOUSE, [GIFT, again]), lines=LINES[:2]))
    assert list(story_questions.purpose(facts, Random(1))) == []
