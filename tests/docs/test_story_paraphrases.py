"""The paraphrased questions of the measurements: each about a line that its film says, and without a word of it."""

from __future__ import annotations

import json
import re

import pytest

from kinodex.sketch.story import StoryFilm, as_json, write_story
from tests.support.stories.paraphrased_questions import HOURS, SEED, paraphrases, questions

FILMS = ("film-01", "film-02", "film-03")


@pytest.fixture(scope="module")
def films() -> dict[str, StoryFilm]:
    return {name: write_story(name, HOURS * 3600 / len(FILMS), SEED) for name in FILMS}


def content_words(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text.casefold()) if len(word) > 3}


def test_each_is_about_a_line_of_its_film_and_shares_no_word_of_content_with_it(films):
    rows = paraphrases()
    assert len(rows) >= 20 and {row["film"] for row in rows} == set(FILMS)
    for row in rows:
        assert row["line"] in {line.text for line in films[row["film"]].lines}, row
        assert not content_words(row["line"]) & content_words(" ".join([row["question"], row["options"][0]])), row
        assert len(set(row["options"])) == 4


def test_they_become_questions_with_the_times_of_their_lines(films, tmp_path):
    for name, film in films.items():
        (tmp_path / f"{name}.script.json").write_text(json.dumps(as_json(film)))
    made = list(questions(tmp_path))
    assert len({each["question_id"] for each in made}) == len(made) == len(paraphrases())
    for each, row in zip(made, paraphrases(), strict=True):
        assert each["options"][each["answer"]] == row["options"][0] and each["evidence"] == each["ranges"][0]
    assert len({each["answer"] for each in made}) == 4
    [liked] = [each for each in made if "shade" in each["question"]]
    assert len(liked["ranges"]) == 3
