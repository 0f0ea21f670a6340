"""Text on screen as an answer: of a question for a word, and where one option alone stands there."""

from __future__ import annotations

import pytest

from kinodex.agent.models.rules import is_talk, read_screen, screen_reply
from kinodex.agent.protocol import SCREEN_TEXT, Note, Question

CARD = Note("v", 10.0, 13.0, SCREEN_TEXT, "MAPLE")
SIGN = Note("v", 30.0, 60.0, SCREEN_TEXT, "LIBRARY 40")
SAID = Note("v", 40.0, 43.0, "subtitle", "RIVER, I said")
WORDS = ("RIVER", "MAPLE", "ECHO")


def test_the_option_that_stands_on_screen_is_the_answer_with_its_note_as_evidence() -> None:
    question = Question("Which word does the title card show?", WORDS)
    reply = screen_reply(question, [SAID, CARD, SIGN], frames=4)
    assert reply == {"action": "answer", "option": "B", "answer": "MAPLE", "evidence": (6,)}


def test_an_open_question_is_answered_by_the_only_text() -> None:
    question = Question("What does the sign say?")
    reply = screen_reply(question, [SAID, SIGN])
    assert reply is not None
    assert (reply["option"], reply["answer"], reply["evidence"]) == (None, "LIBRARY 40", (2,))
    assert screen_reply(question, [CARD, SIGN]) is None


@pytest.mark.parametrize(
    ("question", "notes"),
    [
        (Question("Which word does the title card show?", WORDS), [SAID]),
        (Question("Which word does the title card show?", ("LIBRARY 40", "MAPLE")), [CARD, SIGN]),
        (Question("Which of these passes by?", WORDS), [CARD]),
        (Question("Which code word is spoken?", WORDS), [CARD]),
        (Question("What does the sign say?", ("LIBRARY 4", "STATION 1")), [SIGN]),
    ],
)
def test_nothing_is_read_where_it_is_not_asked_for_or_not_clear(question: Question, notes: list[Note]) -> None:
    assert read_screen(question, notes).choice is None


def test_a_line_that_names_whom_the_question_names_is_read_and_no_other() -> None:
    late = Note("v", 4.0, 7.0, "subtitle", "Lina was late, because somebody had locked the cellar.")
    other = Note("v", 9.0, 12.0, "subtitle", "Vera was late, because the road was flooded.")
    question = Question("Why was Lina late?", ("the road was flooded", "somebody had locked the cellar"))
    verdict = read_screen(question, [other, late])
    assert (verdict.choice, verdict.evidence) == (1, (2,))
    assert read_screen(question, [other]).choice is None
    assert read_screen(Question("Who was late?", question.options), [late]).choice is None


def test_a_code_word_is_that_of_the_door_that_is_asked_for() -> None:
    cellar = Note("v", 4.0, 7.0, "subtitle", "Whoever wants to get into the cellar has to say velvet.")
    vault = Note("v", 9.0, 12.0, "subtitle", "Remember, for the vault the code word is tango.")
    question = Question("What is the code word for the cellar?", ("tango", "velvet"))
    verdict = read_screen(question, [vault, cellar])
    assert (verdict.choice, verdict.evidence) == (1, (2,))
    assert read_screen(question, [vault]).choice is None
    bare = read_screen(Question("What is the code word?", ("tango", "velvet")), [cellar, vault])
    assert (bare.choice, bare.evidence) == (0, (2,)), "the line that speaks of one"
    assert is_talk(question) and not is_talk(Question(question.text)), "the line itself answers without options"
