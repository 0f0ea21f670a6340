"""The two rewards of LongVideoAgent: well-formed turns, and the true answer."""

from __future__ import annotations

import pytest

from kinodex.agent.protocol import Question
from kinodex.agent.variants.longvideoagent_training import answer_correctness, rewards, structural_validity

QUESTION = Question("What flies over the desert?", ("a red kite", "a crow"))


@pytest.mark.parametrize(
    ("turn", "valid"),
    [
        ("<answer>B</answer>", 1),
        ("  <think>The kite is <em>red</em>.</think>\n<answer>A</answer>\n", 1),
        ("<visual_query>what flies?</visual_query>", 1),
        ("<request_grounding></request_grounding>", 1),
        ("<request_grounding>the desert</request_grounding>", 1),
        ("<request_grounding>", 0),
        ("<visual_query> </visual_query>", 0),
        ("<answer>B", 0),
        ("I think <answer>B</answer>", 0),
        ("<answer>B</answer> for sure", 0),
        ("<think>hm<answer>B</answer>", 0),
        ("<answer>A</answer><answer>B</answer>", 0),
        ("<visual_query>a</visual_query><answer>B</answer>", 0),
        ("<answer><visual_query>a</visual_query></answer>", 0),
        ("<visual_query>a</answer>", 0),
        ('{"action": "answer", "option": "B"}', 0),
        ("", 0),
    ],
)
def test_a_turn_is_well_formed_or_not(turn, valid):
    assert structural_validity(turn) == valid


@pytest.mark.parametrize(
    ("turn", "right"),
    [
        ("<answer>B</answer>", 1),
        ("<answer>b.</answer>", 1),
        ("<answer>a crow</answer>", 1),
        ("surely <answer>B</answer>", 1),
        ("<answer>A</answer>", 0),
        ("<answer>insufficient_evidence</answer>", 0),
        ("<answer>E</answer>", 0),
        ("<answer></answer>", 0),
        ("<visual_query>B</visual_query>", 0),
        ("B", 0),
        ("<answer>A</answer><answer>B</answer>", 0),
    ],
)
def test_an_answer_is_the_true_option_or_not(turn, right):
    assert answer_correctness(turn, QUESTION, 1) == right


def test_the_sum_is_alpha_for_each_well_formed_turn_and_one_for_the_answer():
    earned = rewards(["<request_grounding></request_grounding>", "what?", "<answer>B</answer>"], QUESTION, 1, 0.2)
    assert earned.structure == (1, 0, 1)
    assert earned.total == pytest.approx(0.2 * 2 + 1)
    assert earned.per_turn == pytest.approx((0.2, 0.0, 1.2))
    assert rewards([], QUESTION, 1).per_turn == ()


def test_no_number_of_turns_is_worth_the_answer():
    talk = rewards(["<visual_query>a</visual_query>"] * 5, QUESTION, 1)
    assert talk.total < rewards(["<answer>B</answer>"], QUESTION, 1).total


@pytest.mark.parametrize(
    ("turn", "valid"),
    [
        ("Where is it?</think>\n<request_grounding>the desert</request_grounding>", 1),
        ("It is the crow.</think><answer>B</answer>", 1),
        ("</think><answer>B</answer>", 1),
        ("<answer>B</answer>", 0),
        ("It is <answer>B</answer>", 0),
        ("<think>It is the crow.</think><answer>B</answer>", 0),
        ("It is</think> the crow. <answer>B</answer>", 0),
        ("It is</think>the</think><answer>B</answer>", 0),
    ],
)
def test_where_the_template_opens_the_thinking_a_turn_ends_it(turn, valid):
    assert structural_validity(turn, thinking_open=True) == valid
    assert rewards([turn], QUESTION, 1, 0.5, thinking_open=True).structure == (valid,)
