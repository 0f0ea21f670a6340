"""Questions of story films: exactly one option is true, and nothing but the film tells which."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

import pytest

from kinodex.sketch import story_questions
from kinodex.sketch.scenes import NUMBERS
from kinodex.sketch.story import PASSERS, Event, Line, Prop, StoryFilm, View, as_json, shuffle_shots, write_story
from kinodex.sketch.story_questions import MAKERS, Facts, Maker, options, the, write_questions
from tests.support.stories.made_story import AT_HOUSE, AT_TENT, BUSES, CAT, DOG, DUCK, HAT, HORSE, KEY, event, story
from tests.support.stories.story_truth import CHECKS, is_true

SEEDS = range(4)


@cache
def film(seed: int, duration_s: float = 1800.0) -> StoryFilm:
    return write_story("film", duration_s, seed)


@cache
def rows(seed: int, duration_s: float = 1800.0) -> list[dict[str, Any]]:
    """All questions that can be asked, not only those of the file."""
    return [each.as_json() for each in write_questions(film(seed, duration_s), "film.mp4", 10_000)]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("duration_s", [90.0, 1800.0])
def test_exactly_one_option_is_true(seed: int, duration_s: float) -> None:
    script = json.loads(json.dumps(as_json(film(seed, duration_s))))
    assert len(rows(seed, duration_s)) >= (3 if duration_s < 100 else 60)
    for row in rows(seed, duration_s):
        assert len(set(row["options"])) == 4
        true = [option for option in row["options"] if is_true(script, row, option)]
        assert true == [row["options"][row["answer"]]], row


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_what_needs_no_order_stays_true_when_the_shots_are_shuffled(seed: int) -> None:
    shuffled = shuffle_shots(film(seed))
    script, ordered = as_json(shuffled), as_json(film(seed))
    kept = [each.as_json() for each in write_questions(shuffled, "film.mp4", 10_000)]
    by_id = {row["question_id"]: row for row in rows(seed)}
    gone = {row["asks"] for row in rows(seed)} - {row["asks"] for row in kept}
    assert gone <= {"returns", "brings", "meanwhile", "first", "last", "count", "holder", "title"}
    for row in kept:
        same = by_id[row["question_id"]]
        assert {**row, "evidence": 0, "ranges": 0} == {**same, "evidence": 0, "ranges": 0}
        length = sum(high - low for low, high in row["ranges"])
        assert length == pytest.approx(sum(high - low for low, high in same["ranges"]), abs=0.01)
        checked = (ordered, same) if row["asks"] == "who" else (script, row)  # who is there is told by the order
        true = [option for option in row["options"] if is_true(*checked, option)]
        assert true == [row["options"][row["answer"]]], row


def test_an_hour_asks_every_kind_and_every_need() -> None:
    written = write_questions(write_story("film", 3600, 0), "film.mp4")
    assert len(written) == 60
    assert {each.kind for each in written} == set(CHECKS) and len(CHECKS) == len(MAKERS)
    needs = Counter(each.needs for each in written)
    assert needs == {"pictures": 24, "text": 12, "words": 12, "both": 12}


def test_the_question_alone_does_not_tell_the_answer() -> None:
    """The true option shares no more words with its question than the others do, and stands at any place."""
    places: Counter[int] = Counter()
    overlap: list[tuple[float, float]] = []
    for seed in SEEDS:
        for row in rows(seed):
            places[row["answer"]] += 1
            words = set(row["question"].lower().strip("?").split()) - {"the", "a", "an"}
            shared = [len(words & (set(option.lower().split()) - {"the", "a", "an"})) for option in row["options"]]
            right = shared.pop(row["answer"])
            overlap.append((right, sum(shared) / len(shared)))
    total = sum(places.values())
    assert all(0.2 < places[place] / total < 0.3 for place in range(4)), places
    true, false = (sum(each) / total for each in zip(*overlap, strict=True))
    assert abs(true - false) < 0.05, (true, false)


@pytest.mark.parametrize("seed", SEEDS)
def test_false_options_occur_in_the_film(seed: int) -> None:
    script = json.dumps(as_json(film(seed)))
    made_up = Counter[str]()
    few_signs = len({scene.setting.sign for scene in film(seed).scenes} - {None}) < 4
    for row in rows(seed):
        if row["asks"] not in ("where", "title") and not (few_signs and row["asks"] == "sign"):
            for option in row["options"]:
                name = option.removeprefix("the ").removeprefix("an ").removeprefix("a ")
                made_up[row["asks"]] += name not in script
    assert not sum(made_up.values()), made_up


def test_spoken_words_do_not_answer_what_needs_pictures() -> None:
    for seed in SEEDS:
        said = " ".join(line.text for line in film(seed).lines)
        for row in rows(seed):
            name = row["options"][row["answer"]].split(" ", 1)[-1]
            if row["needs"] == "pictures" and row["asks"] != "where":
                assert name not in said, row


def test_neither_numbers_nor_places_tell_the_answer() -> None:
    """Two is the most frequent number, and a lighthouse tells of boats: a guess from that finds no option."""
    kinds = Counter[str]()
    for seed in SEEDS:
        landmarks = {scene.setting.landmark.name: scene.setting.place for scene in film(seed).scenes}
        for row in rows(seed):
            kinds[row["asks"]] += 1
            assert not set(row["options"]) & set(NUMBERS), row
            if row["asks"] == "meanwhile":
                place = landmarks[row["question"].rpartition(" the ")[2].rstrip("?")]
                assert {option.split()[-1] for option in row["options"]} <= set(PASSERS[place]), row
    assert kinds["count"] and kinds["meanwhile"]


def test_words_are_answered_by_what_is_said_not_by_what_is_likely() -> None:
    """An answer that is heard in the films is a false option as often as others are."""
    right, options = Counter[str](), Counter[str]()
    for seed in range(12):
        for row in rows(seed, 900.0):
            if row["needs"] == "words":
                right[row["options"][row["answer"]]] += 1
                options.update(row["options"])
    guesses = [
        (max(row["options"], key=lambda each: right[each] / max(1, options[each])), row["options"][row["answer"]])
        for seed in range(12, 24)
        for row in rows(seed, 900.0)
        if row["needs"] == "words"
    ]
    assert sum(guess == answer for guess, answer in guesses) / len(guesses) < 0.35


def test_everything_in_the_film_is_known_once() -> None:
    film = write_story("film", 900, 1)
    facts = Facts(film)
    for known in (facts.actors, facts.passers, facts.items, facts.landmarks):
        assert known and len(known) == len(set(known))
    assert len(facts.events) == sum(len(scene.events) for scene in film.scenes)
    assert {event.kind for event, _ in facts.of_kind("give", "put")} == {"give", "put"}
    assert sum(facts.visits(scene) == 1 for scene in film.scenes) > 0


def test_things_become_options() -> None:
    cat, owl = Prop("cat", "red"), Prop("dog", "orange")
    assert options([cat, owl], cat) == ("an orange dog",) and the([cat, owl]) == ("the red cat", "the orange dog")


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


CAST = [event("enter", each, 3.0) for each in (CAT, DOG, DUCK, HORSE)]
ONCE = story((AT_HOUSE, [*CAST, event("give", CAT, 20.0, KEY, DOG)]))
TWICE = story(
    (AT_HOUSE, [*CAST, event("give", CAT, 20.0, KEY, DOG), event("give", CAT, 40.0, HAT, DOG)]),
    (AT_TENT, [event("give", DUCK, 120.0, KEY, DOG), event("give", CAT, 140.0, KEY, HORSE)]),
)


def asked(make: Maker, film: StoryFilm) -> dict[str, str]:
    return {draft.text: draft.right for draft in make(Facts(film), Random(1))}


def test_one_who_gives_is_asked_about() -> None:
    assert asked(story_questions.giver, ONCE) == {"Who gives the white key to the blue dog?": "the red cat"}
    assert asked(story_questions.receiver, ONCE) == {"Who gets the white key from the red cat?": "the blue dog"}
    assert asked(story_questions.given, ONCE) == {"What does the red cat give to the blue dog?": "a white key"}
    assert asked(story_questions.given_where, ONCE) == {
        "Where does the red cat give the white key away?": "in the city"
    }
    (draft,) = story_questions.giver(Facts(ONCE), Random(1))
    assert draft.evidence == ((22.0, 23.0),) and not draft.ordered
    assert draft.wrong == ("the white duck", "the pink horse"), "neither the one who gives nor the one who gets it"


def test_what_has_two_answers_is_not_asked() -> None:
    assert "Who gives the white key to the blue dog?" not in asked(story_questions.giver, TWICE)
    assert "Who gets the white key from the red cat?" not in asked(story_questions.receiver, TWICE)
    assert "What does the red cat give to the blue dog?" not in asked(story_questions.given, TWICE)
    assert "Where does the red cat give the white key away?" not in asked(story_questions.given_where, TWICE)
    assert asked(story_questions.giver, TWICE) == {
        "Who gives the black hat to the blue dog?": "the red cat",
        "Who gives the white key to the pink horse?": "the red cat",
    }


def test_who_picks_up_what_lies_there() -> None:
    enters = [event("enter", CAT, 3.0, KEY), *CAST[1:]]
    film = story((AT_HOUSE, [*enters, event("put", CAT, 20.0, KEY), event("take", DUCK, 40.0, KEY, CAT)]))
    assert asked(story_questions.taker, film) == {"Who picks up the white key from the ground?": "the white duck"}
    assert asked(story_questions.taker, ONCE) == {}


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
