"""The request to a judge: replies of one number, and the scale."""

from __future__ import annotations

import pytest

from kinodex.agent.prompts import render
from kinodex.agent.requests.describe import JudgeAnswer, Verdict


@pytest.mark.parametrize("reply", [{"reason": "half", "score": 2}, {"score": "2"}, 2, "2/3"])
def test_a_score_may_come_with_a_reason_or_alone(reply: object) -> None:
    assert Verdict.model_validate(reply).score == 2


@pytest.mark.parametrize("score", [-1, 4, "none", None])
def test_a_score_beyond_the_scale_is_no_verdict(score: object) -> None:
    with pytest.raises(ValueError, match="score"):
        Verdict.model_validate({"reason": "", "score": score})


def test_the_judge_is_shown_question_reference_and_answer() -> None:
    text = render(JudgeAnswer(question="What flies?", reference="a kite", answer="a red kite"))
    assert all(words in text for words in ("What flies?", "a kite", "a red kite"))
