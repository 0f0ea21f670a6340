"""Requests for the answer: which replies are impossible, and which texts are an answer without JSON."""

from __future__ import annotations

import pytest

from agent.core.question import Note, Question, Video
from agent.core.replies import Conclusion
from agent.errors import InvalidReply
from agent.prompts.render import render
from agent.requests.answer import AnswerNotes, Guess, answer_in_words, chosen_option

VIDEO = Video("a" * 32, "kites", 0.0, 60.0)
CHOICE = Question("What colour is the kite?", ("red", "dark blue"))
OPEN = Question("What happens?")


def guess(question: Question) -> Guess:
    return Guess(question=question, videos=(VIDEO,))


def answer(**values: object) -> Conclusion:
    return Conclusion.model_validate({"action": "answer", **values})


@pytest.mark.parametrize(
    ("values", "index"),
    [
        ({"option": "B"}, 1),
        ({"option": "dark blue"}, 1),
        ({"option": "(a)", "answer": "nonsense"}, 0),
        ({"option": None, "answer": "The kite is red."}, 0),
    ],
)
def test_an_option_is_named_by_its_letter_or_its_words(values: dict, index: int) -> None:
    reply = answer(**values)
    guess(CHOICE).check(reply)
    assert chosen_option(CHOICE, reply) == index


@pytest.mark.parametrize(
    ("question", "values", "problem"),
    [
        (CHOICE, {"option": "C"}, "'C' names no option; give a letter from A to B"),
        (CHOICE, {"answer": "green"}, "'green' names no option"),
        (OPEN, {"answer": "  "}, "the answer is empty; say it in a few words"),
        (OPEN, {"option": "A"}, "the answer is empty"),
    ],
)
def test_an_answer_that_cannot_be_one_is_refused(question: Question, values: dict, problem: str) -> None:
    with pytest.raises(InvalidReply, match=problem):
        guess(question).check(answer(**values))


def test_that_the_evidence_is_insufficient_needs_no_answer() -> None:
    guess(CHOICE).check(Conclusion.model_validate({"action": "insufficient_evidence"}))


def test_a_text_that_names_one_option_is_an_answer() -> None:
    assert answer_in_words(CHOICE, "The answer is (B).") == {
        "action": "answer",
        "option": "B",
        "answer": "The answer is (B).",
    }
    assert guess(CHOICE).in_words("The answer is (B).") == answer(option="B", answer="The answer is (B).")
    assert guess(CHOICE).in_words("It may be A or B.") is None
    assert guess(OPEN).in_words("A kite falls.") is None


def test_notes_are_numbered_for_the_evidence() -> None:
    notes = (Note(VIDEO.video_id, 3.0, 4.0, "caption", "a kite"), Note(VIDEO.video_id, 9.0, 9.5, "caption", "a crow"))
    text = render(AnswerNotes(question=CHOICE, videos=(VIDEO,), notes=notes))
    assert "1. 3.0 s to 4.0 s (caption): a kite" in text
    assert "2. 9.0 s to 9.5 s (caption): a crow" in text
