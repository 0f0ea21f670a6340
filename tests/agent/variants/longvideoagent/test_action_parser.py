"""Replies of a LongVideoAgent master: one action in the forms of the paper, of its code, and as JSON."""

from __future__ import annotations

import pytest

from kinodex.agent.errors import InvalidReply
from kinodex.agent.variants.longvideoagent_requests import Action, LastAction, thought, until_action


@pytest.mark.parametrize(
    ("text", "action", "query", "option"),
    [
        ("<think>a <answer>A</answer>?</think> <watch>x</watch>", "visual_query", "x", None),
        ("<reasoning>a</reasoning>\n<search>x</search>", "visual_query", "x", None),
        ("<request_grounding>", "request_grounding", "", None),
        (
            "thinking without a beginning</think><REQUEST_GROUNDING>x</REQUEST_GROUNDING>",
            "request_grounding",
            "x",
            None,
        ),
        ("<answer> a1: a red one.\n</answer>", "answer", "", "a red one"),
        ("<answer>b</answer> and so on", "answer", "", "b"),
        ("<answer>A</answer>\n<answer>B</answer>", "answer", "", "A"),
        ("<visual_query>x</visual_query>\nIt shows a kite.<answer>B</answer>", "visual_query", "x", None),
        ("<request_grounding>x</request_grounding> <think>and</think> more", "request_grounding", "x", None),
        ("<answer>a3</answer>", "answer", "", "D"),
        ("<answer>a3: a red one</answer>", "answer", "", "a red one"),
        ('{"name": "visual_query", "arguments": {"query": "x"}}', "visual_query", "x", None),
        ('{"action": "visual_query", "query": "the <answer> key"}', "visual_query", "the <answer> key", None),
        ('```json\n{"request_grounding": "x"}\n```', "request_grounding", "x", None),
        ('{"action": "answer", "option": "B", "answer": "the red one"}', "answer", "", "B"),
        ('{"answer": "B"}', "answer", "", "B"),
    ],
)
def test_turns_in_the_forms_of_the_paper_its_code_and_json_are_read(text, action, query, option):
    read = Action.from_text(text)
    assert (read.action, read.query, read.option) == (action, query, option)
    assert Action.model_validate(read.model_dump()) == read


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("I would look at it.", "exactly one action"),
        ("", "exactly one action"),
        ("<answer>A<answer>B</answer>", "exactly one action"),
        ("<answer>A <think>or B</think></answer>", "thinks within an action"),
        ("<visual_query>where is the <answer></visual_query>", "exactly one action"),
        ('{"visual_query": "x", "answer": "B"}', "exactly one action"),
        ('{"action": "guess", "answer": "B"}', "exactly one action"),
        ('{"action": "answer", "answer": "B"', "exactly one action"),
        ('{"action": "answer", "answer": "a3", "option": "B"}', "do not say the same"),
        ("<answer>A", "<answer> has no end; close it with </answer>"),
        ("<think>so it is <answer>A</answer>", "the thinking has no end"),
    ],
)
def test_what_is_not_one_action_is_malformed(text, why):
    with pytest.raises(InvalidReply, match=why):
        Action.from_text(text)
    with pytest.raises(InvalidReply, match=why):
        LastAction.from_text(text)


@pytest.mark.parametrize("text", ["<visual_query>x</visual_query>", "<request_grounding>", '{"search": "x"}'])
def test_the_last_turn_is_an_answer_or_nothing(text):
    with pytest.raises(InvalidReply, match="the turns are used up"):
        LastAction.from_text(text)


@pytest.mark.parametrize("words", ["insufficient_evidence", "Insufficient evidence."])
def test_that_there_is_no_evidence_may_be_said(words):
    for reply in (Action.from_text(f"<answer>{words}</answer>"), LastAction.from_text(f"<answer>{words}</answer>")):
        assert reply.action == "insufficient_evidence"


def test_thoughts_are_what_stands_before_the_action():
    assert thought("<think> Where?\n</think>\n<answer>A</answer>") == "Where?"
    assert thought("Where? <answer>A</answer>") == "Where?"
    assert thought("Where? </think><answer>A</answer>") == "Where?"
    assert thought("<answer>A</answer>") == ""


def test_a_turn_ends_with_its_action():
    assert until_action("<think>a</answer></think><answer>A</answer> and more") == (
        "<think>a</answer></think><answer>A</answer>"
    )
    assert until_action('{"answer": "A"}') == '{"answer": "A"}'
