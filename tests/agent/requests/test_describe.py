"""Requests to describe a video: an empty caption or summary is no reply."""

from __future__ import annotations

import pytest

from kinodex.agent.errors import InvalidReply
from kinodex.agent.protocol import Segment, Video
from kinodex.agent.replies import strict_schema
from kinodex.agent.requests.describe import DescribeSegment, Description, Summarize, Summary

DESCRIBE = DescribeSegment(segment=Segment(1, "a" * 32, 0.0, 5.0), frames=())
SUMMARIZE = Summarize(videos=(Video("a" * 32, "kites", 0.0, 60.0),), notes=())


def test_a_caption_and_a_summary_with_words_are_replies() -> None:
    DESCRIBE.check(Description.model_validate({"caption": "a kite", "confidence": "85%"}))
    SUMMARIZE.check(Summary(summary="Kites fly."))


def test_empty_ones_are_refused() -> None:
    with pytest.raises(InvalidReply, match="the caption is empty"):
        DESCRIBE.check(Description(caption=" ", confidence=50))
    with pytest.raises(InvalidReply, match="the summary is empty"):
        SUMMARIZE.check(Summary(summary="\n"))


def test_a_confidence_beyond_the_scale_is_no_reply() -> None:
    with pytest.raises(ValueError, match="confidence"):
        Description.model_validate({"caption": "a kite", "confidence": 101})


def test_the_schemas_say_what_is_wanted() -> None:
    assert strict_schema(Description)["description"].startswith("What is seen, and how sure the model")
    assert strict_schema(Summary)["description"] == "What a video shows as a whole."
