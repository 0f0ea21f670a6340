"""Verdicts on notes: answers, confidence and relevance by their words."""

from __future__ import annotations

import asyncio

import pytest

from kinodex.agent.models import rules
from kinodex.agent.models.rules import RuleBasedModel
from kinodex.agent.protocol import Note, Question
from kinodex.agent.requests.answer import AnswerNotes
from kinodex.agent.variants.videoagent import ReflectOnAnswer
from kinodex.agent.variants.videotree import JudgeRelevance

KITE = Question("What colour is the kite in the desert?", ("red", "blue"))


def replied(environment, request):
    return asyncio.run(RuleBasedModel(environment).ask(request)).reply


def notes(*texts: str, confidence: float | None = None) -> tuple[Note, ...]:
    return tuple(Note("v" * 32, 10.0 * at, 10.0 * at + 1, "caption", text, confidence) for at, text in enumerate(texts))


@pytest.mark.parametrize(
    ("question", "said", "answer", "evidence"),
    [
        (KITE, ("a red car at sea", "a blue kite in the desert"), "B", [2]),
        (Question("How many boats are at sea?", ("two", "three")), ("three red boats at sea by day",), "B", [1]),
        (Question("Where is the red kite?", ("at sea", "in the snow")), ("a red kite in the snow at night",), "B", [1]),
        (Question("Which of these appears?", ("a red car", "a pink hat")), ("x", "a pink hat", "a red hat"), "B", [2]),
        (Question("Which of these is seen first?", ("a car", "a hat")), ("a hat", "a car", "a hat"), "B", [1]),
        (Question("Which of these is seen last?", ("a car", "a hat")), ("a hat", "a car", "a bus"), "A", [2]),
        (
            Question("What appears right after the red kite at sea?", ("a car", "a hat")),
            ("a car", "a red kite at sea", "a hat", *["x"] * 6, "a car"),
            "B",
            [3],
        ),
    ],
)
def test_notes_answer_by_their_words(elsewhere, question, said, answer, evidence):
    reply = replied(elsewhere, AnswerNotes(question=question, videos=(), notes=notes(*said)))
    assert (reply.action, reply.option, reply.evidence) == ("answer", answer, evidence)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (KITE, ()),
        (KITE, ("a red car in the desert", "a kite at sea")),
        (KITE, ("a kite in the desert",)),
        (Question("Which of these appears?", ("a red car", "a pink hat")), ("a red bus",)),
        (KITE, ("a red kite in the desert", "a blue kite in the desert")),
        (Question("What appears right after the red kite at sea?", ("a car", "a hat")), ("a hat", "a car")),
        (Question("Which of these is seen first?", ("a car", "a hat")), ("a bus",)),
    ],
)
def test_notes_that_do_not_tell_are_no_answer(elsewhere, question, said):
    reply = replied(elsewhere, AnswerNotes(question=question, videos=(), notes=notes(*said)))
    assert (reply.action, reply.option) == ("insufficient_evidence", None)


def test_open_questions_are_answered_from_notes_with_a_word_or_a_time(elsewhere):
    told = notes("a bus", "a blue kite in the desert")
    colour = replied(elsewhere, AnswerNotes(question=Question("What colour is the kite?"), videos=(), notes=told))
    when = replied(elsewhere, AnswerNotes(question=Question("When is the kite shown?"), videos=(), notes=told))
    assert (colour.answer, when.answer) == ("blue", "kite at 10.0 s")


def test_confidence_follows_what_the_notes_say_and_how_sure_they_are(elsewhere):
    levels = [
        replied(elsewhere, ReflectOnAnswer(question=KITE, videos=(), notes=told, answer="B. blue")).confidence
        for told in (
            notes("a blue kite in the desert"),
            notes("a blue kite in the desert", confidence=0.5),
            notes("a blue kite at sea"),
        )
    ]
    assert levels == [3, 2, 1]


def test_relevance_has_three_levels(elsewhere):
    told = notes("a red kite in the desert", "a red kite at sea", "a red car at sea")
    reply = replied(elsewhere, JudgeRelevance(question=KITE, videos=(), notes=told))
    assert [(each.cluster, each.relevance) for each in reply.clusters] == [(1, 3), (2, 2), (3, 1)]


def test_words_in_one_and_in_many_are_the_same():
    assert rules.relevances(Question("Is there a boat at sea?"), notes("two boats at sea")) == [3]
