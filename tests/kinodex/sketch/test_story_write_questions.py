"""Exactly one option of every question about a story is true, and the question alone does not tell which."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from typing import Any

import pytest

from kinodex.sketch.scenes import NUMBERS
from kinodex.sketch.story import PASSERS, StoryFilm, as_json, shuffle_shots, write_story
from kinodex.sketch.story_questions import MAKERS, write_questions
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
