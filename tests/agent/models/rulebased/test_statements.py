"""Cloze statements: a question and an option as one statement; and verdicts on them as replies."""

from __future__ import annotations

import pytest

from kinodex.agent.models.rules_words import Verdict, cloze_statements, to_reply
from kinodex.agent.protocol import Question
from kinodex.agent.requests.answer import Conclusion


@pytest.mark.parametrize(
    ("text", "option", "statement"),
    [
        ("What colour is the kite over the desert?", "red", "red kite over the desert"),
        ("Which color does the old car have?", "a Blue", "blue old car"),
        ("How many boats are on the sea?", "three", "three boats on the sea"),
        ("How many boats are there on the sea?", "3", "three boats on the sea"),
        ("Where is the red kite?", "in the desert", "red kite in the desert"),
        ("In which place is the clock?", "the forest", "clock in the forest"),
        ("Which of these appears in the video?", "a red car", "red car"),
        ("Which of the following animals can be seen at night?", "an owl", "owl at night"),
        ("Is there a dog in the snow?", "yes", "dog in the snow"),
        ("Is there a dog in the snow?", "No", "no dog in the snow"),
    ],
)
def test_options_become_statements(text, option, statement):
    assert cloze_statements(Question(text, (option, "something else"))).options[0] == statement


def test_a_moment_is_told_from_what_is_asked():
    asked = cloze_statements(Question("What appears right after the red kite over the desert?", ("a boat", "a car")))
    assert (asked.order, asked.moment, asked.options) == ("after", "red kite over the desert", ("boat", "car"))
    assert asked.queries == ("red kite over the desert",)


def test_colours_and_numbers_stand_in_for_options():
    assert "green kite" in cloze_statements(Question("What colour is the kite?")).options
    assert "two boats at sea" in cloze_statements(Question("How many boats are at sea?")).options
    assert cloze_statements(Question("What happens?")).options == ()


TIMES_S = [3.0, 12.5]


@pytest.mark.parametrize(
    ("question", "verdict", "reply"),
    [
        (Question("Which?", ("a car", "a hat")), Verdict(1, 3.0, 1.0, (2,)), ("answer", "B", "a hat", [2])),
        (Question("What colour is the kite?"), Verdict(0, 3.0, 1.0, (1,)), ("answer", None, "red", [1])),
        (Question("When is the kite shown?"), Verdict(0, 3.0, 1.0, (2,)), ("answer", None, "kite at 12.5 s", [2])),
        (Question("Which?", ("a car", "a hat")), Verdict(), ("insufficient_evidence", None, None, [])),
    ],
)
def test_a_verdict_becomes_a_valid_reply(question: Question, verdict: Verdict, reply: tuple) -> None:
    parsed = Conclusion.model_validate(to_reply(question, verdict, TIMES_S))
    assert (parsed.action, parsed.option, parsed.answer, parsed.evidence) == reply
