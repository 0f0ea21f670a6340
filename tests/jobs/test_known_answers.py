"""Known answers are read, matched to questions, and a file that is none is one clear line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kinodex.agent.protocol.question import Question
from kinodex.jobs.errors import UsageError
from kinodex.jobs.known_answers import KnownQuestion, read_known, true_option

ROW = {
    "video": "film-01.mp4",
    "kind": "colour",
    "question": "What colour is the boat?",
    "options": ["red", "blue"],
    "answer": 1,
    "evidence": [10, 20.5],
}


def test_a_line_becomes_a_question_with_its_answer(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text(json.dumps(ROW) + "\n")
    question = Question("What colour is the boat?", ("red", "blue"))
    assert read_known(path) == [KnownQuestion("film-01.mp4", "colour", question, 1, 10, 20.5)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no question"),
        ("no json", "line 1: Expecting value"),
        (json.dumps(ROW | {"answer": "red"}), "line 1: not a question with its answer"),
        (json.dumps(ROW) + "\n{}", "line 2: not a question with its answer"),
    ],
)
def test_a_file_that_is_none_says_where(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text(text)
    with pytest.raises(UsageError, match=f"{message}.*give a line of JSON for each question"):
        read_known(path)
    with pytest.raises(UsageError, match=r"cannot read .*none\.jsonl: No such file"):
        read_known(tmp_path / "none.jsonl")


def test_the_answer_of_a_question_that_two_films_share_is_that_of_the_film() -> None:
    question = Question("What colour is the boat?", ("red", "blue"))
    known = [KnownQuestion(f"film-0{film}.mp4", "colour", question, film - 1, 0, 1) for film in (1, 2)]
    assert [true_option(known, question, [title]) for title in ("film-01", "film-02")] == [0, 1]
    with pytest.raises(UsageError, match="different answers are known"):
        true_option(known, question, ["film-01", "film-02"])
    with pytest.raises(UsageError, match="no answer is known"):
        true_option(known, Question("Where is the boat?"), ["film-01"])
