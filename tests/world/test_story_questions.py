"""Questions of story films: exactly one option is true, and nothing but the film tells which."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import asdict
from functools import cache
from random import Random
from typing import Any

import pytest

from tests.world import story_questions
from tests.world.sketch.scenes import NUMBERS, TitleCard
from tests.world.story import (
    PASSERS,
    Event,
    Line,
    Prop,
    Setting,
    StoryFilm,
    StoryScene,
    StoryShot,
    as_json,
    shuffle_shots,
    write_story,
)
from tests.world.story_questions import MAKERS, Facts, Maker, write_questions
from tests.world.story_truth import CHECKS, is_true

CAT, DOG, DUCK, HORSE = Prop("cat", "red"), Prop("dog", "blue"), Prop("duck", "white"), Prop("horse", "pink")
KEY, HAT = Prop("key", "white"), Prop("hat", "black")
BUSES = tuple(Prop("bus", colour) for colour in ("green", "red", "pink", "blue"))
HOUSE, TENT = Prop("house", "green"), Prop("tent", "brown")
AT_HOUSE = Setting("city", False, HOUSE, 0.3, "HOTEL 7", 0.545, 1)
AT_TENT = Setting("desert", True, TENT, 0.3, None, 0.545, 2)
NAMES = {CAT: "Mara", DOG: "Otto", DUCK: "Lina", HORSE: "Bruno"}


def event(
    kind: str,
    who: Prop,
    start_s: float,
    what: Prop | None = None,
    other: Prop | None = None,
    *,
    cue: str | None = None,
    back_at_s: float | None = None,
) -> Event:
    """An event of four seconds, whose moment is its third."""
    return Event(kind, who, (start_s, start_s + 4), (start_s + 2, start_s + 3), what, other, cue, back_at_s)


def story(*scenes: tuple[Setting, list[Event]], lines: tuple[Line, ...] = ()) -> StoryFilm:
    """A film of scenes of 100 s, each a shot of 98 s after a title card of 2 s; events are in the time of the film."""
    shots: list[StoryShot] = []
    for number in range(len(scenes)):
        shots += [StoryShot(number * 1200, 24, card=TitleCard(f"WORD{number}"))]
        shots += [StoryShot(number * 1200 + 24, 1176, number)]
    made = tuple(
        StoryScene(setting, (number * 100 + 2, number * 100 + 100), (), tuple(events))
        for number, (setting, events) in enumerate(scenes)
    )
    return StoryFilm("film", 0, "story", tuple(shots), made, lines, NAMES)


SEEDS = range(2)


@cache
def film(seed: int, duration_s: float = 1800.0) -> StoryFilm:
    return write_story("film", duration_s, seed)


@cache
def rows(seed: int, duration_s: float = 1800.0) -> list[dict[str, Any]]:
    """All questions that can be asked, not only those of the file."""
    return [asdict(each) for each in write_questions(film(seed, duration_s), "film.mp4", 10_000)]


@pytest.mark.slow
def test_exactly_one_option_is_true() -> None:
    for seed in SEEDS:
        for duration_s, least in ((90.0, 3), (1800.0, 60)):
            script = json.loads(json.dumps(as_json(film(seed, duration_s))))
            assert len(rows(seed, duration_s)) >= least
            for row in rows(seed, duration_s):
                assert len(set(row["options"])) == 4
                true = [option for option in row["options"] if is_true(script, row, option)]
                assert true == [row["options"][row["answer"]]], row
    written = write_questions(write_story("film", 3600, 0), "film.mp4")
    assert len(written) == 60 and {each.kind for each in written} == set(CHECKS) and len(CHECKS) == len(MAKERS)
    assert Counter(each.needs for each in written) == {"pictures": 24, "text": 12, "words": 12, "both": 12}


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS[:1])
def test_what_needs_no_order_stays_true_when_the_shots_are_shuffled(seed: int) -> None:
    shuffled = shuffle_shots(film(seed))
    script, ordered = as_json(shuffled), as_json(film(seed))
    kept = [asdict(each) for each in write_questions(shuffled, "film.mp4", 10_000)]
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


@pytest.mark.slow
def test_nothing_but_the_film_tells_the_answer() -> None:
    """Two is the most frequent number, and a lighthouse tells of boats: a guess from that finds no option."""
    places, kinds = Counter[int](), Counter[str]()
    overlap: list[tuple[float, float]] = []
    articles = {"the", "a", "an"}
    for seed in SEEDS:
        script, said = json.dumps(as_json(film(seed))), " ".join(line.text for line in film(seed).lines)
        few_signs = len({scene.setting.sign for scene in film(seed).scenes} - {None}) < 4
        landmarks = {scene.setting.landmark.name: scene.setting.place for scene in film(seed).scenes}
        for row in rows(seed):
            places[row["answer"]] += 1
            kinds[row["asks"]] += 1
            words = set(row["question"].lower().strip("?").split()) - articles
            shared = [len(words & (set(option.lower().split()) - articles)) for option in row["options"]]
            overlap.append((shared.pop(row["answer"]), sum(shared) / len(shared)))
            if row["asks"] not in ("where", "title") and not (few_signs and row["asks"] == "sign"):
                names = [re.sub(r"^(the|an|a) ", "", option) for option in row["options"]]
                assert all(name in script for name in names), row
            if row["needs"] == "pictures" and row["asks"] != "where":
                assert row["options"][row["answer"]].split(" ", 1)[-1] not in said, row
            assert not set(row["options"]) & set(NUMBERS), row
            if row["asks"] == "meanwhile":
                place = landmarks[row["question"].rpartition(" the ")[2].rstrip("?")]
                assert {option.split()[-1] for option in row["options"]} <= set(PASSERS[place]), row
    assert kinds["count"] and kinds["meanwhile"]
    assert all(0.2 < places[place] / kinds.total() < 0.3 for place in range(4)), places
    true, false = (sum(each) / kinds.total() for each in zip(*overlap, strict=True))
    assert abs(true - false) < 0.05, (true, false)


@pytest.mark.slow
def test_words_are_answered_by_what_is_said_not_by_what_is_likely() -> None:
    """An answer that is heard in the films is a false option as often as others are."""
    right, options = Counter[str](), Counter[str]()
    for seed in range(6):
        for row in rows(seed, 900.0):
            if row["needs"] == "words":
                right[row["options"][row["answer"]]] += 1
                options.update(row["options"])
    guesses = [
        (max(row["options"], key=lambda each: right[each] / max(1, options[each])), row["options"][row["answer"]])
        for seed in range(6, 12)
        for row in rows(seed, 900.0)
        if row["needs"] == "words"
    ]
    assert sum(guess == answer for guess, answer in guesses) / len(guesses) < 0.35


def asked(make: Maker, film: StoryFilm) -> dict[str, str]:
    return {draft.text: draft.right for draft in make(Facts(film), Random(1))}


CAST = [event("enter", each, 3.0) for each in (CAT, DOG, DUCK, HORSE)]
ONCE = story((AT_HOUSE, [*CAST, event("give", CAT, 20.0, KEY, DOG)]))
TWICE = story(
    (AT_HOUSE, [*CAST, event("give", CAT, 20.0, KEY, DOG), event("give", CAT, 40.0, HAT, DOG)]),
    (AT_TENT, [event("give", DUCK, 120.0, KEY, DOG), event("give", CAT, 140.0, KEY, HORSE)]),
)


def test_one_who_gives_is_asked_about_where_there_is_one_answer() -> None:
    who_gives, who_gets = "Who gives the white key to the blue dog?", "Who gets the white key from the red cat?"
    what, where = "What does the red cat give to the blue dog?", "Where does the red cat give the white key away?"
    for make, text, right in (
        (story_questions.giver, who_gives, "the red cat"),
        (story_questions.receiver, who_gets, "the blue dog"),
        (story_questions.given, what, "a white key"),
        (story_questions.given_where, where, "in the city"),
    ):
        assert asked(make, ONCE) == {text: right}
        assert text not in asked(make, TWICE)
    assert asked(story_questions.giver, TWICE) == {
        "Who gives the black hat to the blue dog?": "the red cat",
        "Who gives the white key to the pink horse?": "the red cat",
    }
    (draft,) = story_questions.giver(Facts(ONCE), Random(1))
    assert draft.evidence == ((22.0, 23.0),) and not draft.ordered
    assert draft.wrong == ("the white duck", "the pink horse"), "neither the one who gives nor the one who gets it"
    enters = [event("enter", CAT, 3.0, KEY), *CAST[1:]]
    film = story((AT_HOUSE, [*enters, event("put", CAT, 20.0, KEY), event("take", DUCK, 40.0, KEY, CAT)]))
    assert asked(story_questions.taker, film) == {"Who picks up the white key from the ground?": "the white duck"}
    assert asked(story_questions.taker, ONCE) == {}


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


def test_words_alone_and_words_with_pictures_of_the_same_time() -> None:
    for make, needs, *expected in (
        (story_questions.plan, "words", "Where does Otto plan to go?", "the coast", (50.0, 52.0)),
        (story_questions.reason, "words", "Why was Otto late?", "a wheel broke", (60.0, 62.0)),
        (story_questions.code, "words", "What is the code word for the attic?", "velvet", (70.0, 72.0)),
        (
            story_questions.purpose, "both",
            "What is the white key for that the blue dog is given, as is said then?", "the choir", GIFT.moment,
        ),
        (
            story_questions.cue, "both",
            'What passes by right after somebody says "Any moment now"?', "a green bus", BUS.moment,
        ),
        (story_questions.who, "both", "Which of these is Mara?", "the red cat", (5.0, 7.0)),
    ):  # fmt: skip
        (draft,) = make(FACTS, Random(1))
        assert [draft.text, draft.right, *draft.evidence] == expected
        assert (draft.needs, draft.ordered) == (needs, False) and draft.right not in draft.wrong
    again = event("give", CAT, 80.0, KEY, DOG)
    facts = Facts(story((AT_HOUSE, [GIFT, again]), lines=LINES[:2]))
    assert list(story_questions.purpose(facts, Random(1))) == [], "a gift that is given twice"
