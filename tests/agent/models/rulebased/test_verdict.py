"""Verdicts as replies: the option's letter, a word of the basic vocabulary, or a time."""

from __future__ import annotations

import pytest

from agent.core.question import Question
from agent.models.rulebased.verdict import Verdict, to_reply
from agent.requests.answer import Conclusion

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
