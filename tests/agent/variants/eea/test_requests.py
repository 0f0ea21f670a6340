"""Scores and queries in one reply, in the forms that models write them."""

from __future__ import annotations

import json

import pytest

from kinodex.agent.errors import InvalidReply
from kinodex.agent.prompts import render
from kinodex.agent.protocol import Question, Segment, Video
from kinodex.agent.requests.tree import ScoresAndQueries
from kinodex.agent.variants.eea import ScoreAndPropose

FILM = Video("a" * 32, "film", 0.0, 100.0)
ASKING = ScoreAndPropose(
    question=Question("What colour is the kite?", ("red", "blue")),
    videos=(FILM,),
    segments=(Segment(1, FILM.video_id, 0.0, 50.0), Segment(2, FILM.video_id, 50.0, 100.0)),
    frames=(),
    known=("red kite",),
)
SCORES = {"Segment 1": {"explanation": "sky", "score": 70}, "Segment 2": 10}


@pytest.mark.parametrize(
    "said",
    [
        {**SCORES, "queries": ["a boat"]},
        {**SCORES, "query1": "a boat"},
        {"segments": [{"segment": 1, "score": 70}, {"segment": 2, "score": 10}], "queries": ["a boat"]},
        {"segments": [{"segment": 1, "score": 70}, {"segment": 2, "score": 10}], "query1": "a boat"},
    ],
)
def test_queries_are_read_beside_scores_in_any_form(said: dict) -> None:
    reply = ScoresAndQueries.model_validate(said)
    assert [(each.segment, each.score) for each in reply.segments] == [(1, 70), (2, 10)]
    assert reply.queries == ["a boat"]


def test_no_query_is_no_fault_and_one_too_long_is() -> None:
    ASKING.check(ScoresAndQueries.model_validate(SCORES))
    with pytest.raises(InvalidReply, match="a query is empty"):
        ASKING.check(ScoresAndQueries.model_validate({**SCORES, "queries": ["x" * 400]}))


def test_the_prompt_asks_for_both_and_names_what_was_searched_for() -> None:
    text = render(ASKING)
    assert "Searched for already: red kite." in text
    assert json.loads(text.rpartition("made up: ")[2])["queries"]
