"""Questions, and requests as they are in traces: content keys and JSON values."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kinodex.agent.errors import BadQuestion
from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.request_key import plain, request_key
from kinodex.agent.protocol.videos import Video
from tests.support.servers.wire import frame, score


def test_keys_tell_requests_apart_by_content() -> None:
    others = score((frame(21), frame(40))), replace(score(), attempt=1)
    assert request_key(score()) == request_key(score())
    assert len({request_key(each) for each in (score(), *others)}) == 3
    video = Video("v" * 32, "film", 0.0, 100.0)
    values = {"video_id": "v" * 32, "title": "film", "start_s": 0.0, "duration_s": 100.0}
    assert plain(replace(video, has_pictures=False)) == {**values, "has_pictures": False}


def test_questions_that_cannot_be_asked() -> None:
    for text, options, said in (
        ("", (), "question is empty"),
        (" \n", ("a", "b"), "question is empty"),
        ("What?", ("only",), "got 1 option; .*2 to 26"),
        ("What?", tuple(f"option {n}" for n in range(200)), "got 200 options; .*2 to 26"),
        ("What?", ("red", " "), "an option is empty"),
        ("What?", ("red", "blue", "RED"), "'red' is given more than once"),
        ("What is \ud83d?", (), r"holds '.ud83d', which is half a character"),
        ("What?", ("red", "blue \udcff"), r"holds '.udcff', which is half a character"),
    ):
        with pytest.raises(BadQuestion, match=said) as error:
            Question(text, options)
        assert "\n" not in str(error.value)
