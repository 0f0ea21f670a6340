"""Requests: their content keys."""

from __future__ import annotations

from agent.core.protocol import ShownFrame, request_key
from agent.core.question import Question, Segment, Video
from agent.requests.tree import ScoreSegments

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
