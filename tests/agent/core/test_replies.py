"""Replies in the shapes that the papers' prompts ask for, and strict schemas."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from agent.core.question import Question
from agent.core.replies import Conclusion, Decision, Queries, SegmentScores
from agent.requests.answer import chosen_option

COLOURS = Question("What colour is the kite?", ("red", "dark blue", "green"))


def test_scores_in_the_shape_of_the_paper():
    paper = {"Segment 1": {"explanation": "sky", "score": "85%"}, "Segment 2": {"explanation": "sea", "score": 10}}
    reply = SegmentScores.model_validate(paper)
    assert [(each.segment, each.score, each.explanation) for each in reply.segments] == [(1, 85, "sky"), (2, 10, "sea")]
    assert SegmentScores.model_validate({"segments": [{"segment": "Segment 2", "score": 7}]}).segments[0].segment == 2


@pytest.mark.parametrize("scores", [{"Segment 1": {"score": 101}}, {"Segment 1": {"score": "high"}}, "none", None])
def test_scores_that_are_none(scores):
    with pytest.raises(ValidationError):
        SegmentScores.model_validate(scores)


def test_queries_in_every_shape_of_the_paper():
    for said in (["kite", "sea"], {"query1": "kite", "query2": "sea"}, {"queries": ["kite", "sea"]}):
        assert Queries.model_validate(said).queries == ["kite", "sea"]
    assert Queries.model_validate({}).queries == []


def test_decisions_in_the_shape_of_the_paper():
    assert Decision.model_validate({"Segment": 4}).segment == 4
    assert Decision.model_validate({"segment": "Segment 4"}).action == "explore"
    answer = Decision.model_validate("C")
    assert (answer.action, chosen_option(COLOURS, answer)) == ("answer", 2)


@pytest.mark.parametrize("reply", [Decision, SegmentScores, Queries, Conclusion])
def test_schemas_are_strict(reply):
    schema = reply.model_json_schema()
    for each in [schema, *schema.get("$defs", {}).values()]:
        assert each["additionalProperties"] is False
        assert sorted(each["required"]) == sorted(each["properties"])
