"""Questions, the replies that are accepted, and those that are refused with a reason."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from agent.core.protocol import ShownFrame, request_key
from agent.core.question import Question, ScoredSegment, Segment, Video
from agent.core.replies import Conclusion, Decision, Queries, SegmentScores
from agent.errors import BadQuestion, InvalidReply
from agent.requests.answer import chosen_option
from agent.requests.tree import Decide, DiscoverQueries, ProposeQueries, ScoreSegments

COLOURS = Question("What colour is the kite?", ("red", "dark blue", "green"))
VIDEO = Video("v" * 32, "film", 0.0, 100.0)
PARTS = (Segment(1, VIDEO.video_id, 0.0, 50.0), Segment(2, VIDEO.video_id, 50.0, 100.0))
FRAME = ShownFrame(VIDEO.video_id, 50, 50.0, 8, 8, b"picture")


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("", (), "question is empty"),
        (" \n", ("a", "b"), "question is empty"),
        ("What?", ("only",), "got 1 option; .*2 to 26"),
        ("What?", tuple(f"option {n}" for n in range(200)), "got 200 options; .*2 to 26"),
        ("What?", ("red", " "), "an option is empty"),
        ("What?", ("red", "blue", "RED"), "'red' is given more than once"),
        ("What is \ud83d?", (), r"holds '.ud83d', which is half a character"),
        ("What?", ("red", "blue \udcff"), r"holds '.udcff', which is half a character"),
    ],
)
def test_questions_that_cannot_be_asked(text, options, said):
    with pytest.raises(BadQuestion, match=said) as error:
        Question(text, options)
    assert "\n" not in str(error.value)


def test_open_ended_and_the_most_options_are_fine():
    assert Question("What?").lettered == ()
    assert Question("What?", tuple(f"option {n}" for n in range(26))).lettered[-1] == ("Z", "option 25")


@pytest.mark.parametrize(
    ("said", "option"),
    [
        ("B", 1),
        ("b", 1),
        ("(B)", 1),
        ("B. dark blue", 1),
        ("Answer: B", 1),
        ("The answer is C.", 2),
        ("Dark blue.", 1),
        ("D", None),
        ("I think it is red", 0),
        ("I think it is not red", None),
        ("A kite", None),
        ("", None),
        ("Green", 2),
    ],
)
def test_an_option_is_named_by_letter_or_words(said, option):
    assert COLOURS.option_index(said) == option


def test_words_win_over_letters():
    assert Question("Which grade?", ("B", "A")).option_index("A") == 1


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


def scoring() -> ScoreSegments:
    return ScoreSegments(question=COLOURS, videos=(VIDEO,), segments=PARTS, frames=(FRAME,))


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ({"Segment 1": {"score": 5}, "Segment 9": {"score": 5}}, "segment 9 is not among .*1, 2"),
        ({"segments": [{"segment": 1, "score": 5}, {"segment": 1, "score": 6}]}, "twice"),
        ({"segments": []}, "no segment is scored"),
    ],
)
def test_impossible_scores(scores, said):
    with pytest.raises(InvalidReply, match=said):
        scoring().check(SegmentScores.model_validate(scores))


def test_a_segment_may_be_left_out():
    scoring().check(SegmentScores.model_validate({"Segment 1": {"score": 5}}))


def deciding(must_answer: bool = False, question: Question = COLOURS) -> Decide:
    candidates = (ScoredSegment(PARTS[0], 0.5), ScoredSegment(PARTS[1], 0.4, explorable=False))
    return Decide(question=question, videos=(VIDEO,), candidates=candidates, frames=(FRAME,), must_answer=must_answer)


@pytest.mark.parametrize(
    ("decision", "must_answer", "said"),
    [
        ({"Segment": 2}, False, "segment 2 cannot be explored; choose one of \\[1\\]"),
        ({"Segment": 77}, False, "segment 77 cannot be explored"),
        ({"action": "explore"}, False, "segment None cannot be explored"),
        ({"Segment": 1}, True, "exploring is over"),
        ({"option": "D"}, False, "'D' names no option; give a letter from A to C"),
        ({"action": "answer", "answer": "a balloon"}, False, "names no option"),
    ],
)
def test_impossible_decisions(decision, must_answer, said):
    with pytest.raises(InvalidReply, match=said):
        deciding(must_answer).check(Decision.model_validate(decision))


def test_an_open_ended_answer_needs_words():
    with pytest.raises(InvalidReply, match="answer is empty"):
        deciding(question=Question("What?")).check(Decision.model_validate({"action": "answer", "option": "A"}))


def test_queries_are_short_texts():
    with pytest.raises(InvalidReply, match="no query"):
        DiscoverQueries(question=COLOURS).check(Queries(queries=[]))
    with pytest.raises(InvalidReply, match="empty or over 300"):
        ProposeQueries(question=COLOURS, known=(), frames=(FRAME,)).check(Queries(queries=["x" * 301]))


def test_keys_tell_requests_apart_by_content():
    again = ScoreSegments(question=COLOURS, videos=(VIDEO,), segments=PARTS, frames=(FRAME,))
    other_picture = ShownFrame(VIDEO.video_id, 50, 50.0, 8, 8, b"another picture")
    other = ScoreSegments(question=COLOURS, videos=(VIDEO,), segments=PARTS, frames=(other_picture,))
    second = ScoreSegments(question=COLOURS, videos=(VIDEO,), segments=PARTS, frames=(FRAME,), attempt=1)
    assert request_key(scoring()) == request_key(again)
    assert len({request_key(each) for each in (again, other, second)}) == 3
