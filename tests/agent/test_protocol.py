"""Requests and what they are in traces: content keys, JSON values, and the model of a role."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kinodex.agent.errors import BadQuestion
from kinodex.agent.protocol import (
    Question,
    Segment,
    ShownFrame,
    Video,
    plain,
    request_key,
)
from kinodex.agent.requests.tree import ScoreSegments

COLOURS = Question("What colour is the kite?", ("red", "dark blue", "green"))
VIDEO = Video("v" * 32, "film", 0.0, 100.0)
PARTS = (Segment(1, VIDEO.video_id, 0.0, 50.0), Segment(2, VIDEO.video_id, 50.0, 100.0))
FRAME = ShownFrame(VIDEO.video_id, 50, 50.0, 8, 8, b"picture")


def scoring() -> ScoreSegments:
    return ScoreSegments(question=COLOURS, videos=(VIDEO,), segments=PARTS, frames=(FRAME,))


def test_keys_tell_requests_apart_by_content():
    again = ScoreSegments(question=COLOURS, videos=(VIDEO,), segments=PARTS, frames=(FRAME,))
    other_picture = ShownFrame(VIDEO.video_id, 50, 50.0, 8, 8, b"another picture")
    other = ScoreSegments(question=COLOURS, videos=(VIDEO,), segments=PARTS, frames=(other_picture,))
    second = ScoreSegments(question=COLOURS, videos=(VIDEO,), segments=PARTS, frames=(FRAME,), attempt=1)
    assert request_key(scoring()) == request_key(again)
    assert len({request_key(each) for each in (again, other, second)}) == 3


def test_a_field_that_older_traces_do_not_have_is_left_out_while_it_has_its_default():
    plain_video = {"video_id": "v" * 32, "title": "film", "start_s": 0.0, "duration_s": 100.0}
    assert plain(VIDEO) == plain_video
    assert plain(replace(VIDEO, has_pictures=False)) == {**plain_video, "has_pictures": False}


# Questions, the replies that are accepted, and those that are refused with a reason.


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
