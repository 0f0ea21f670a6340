"""Requests of VideoSeek's tools: numbers of frames as they are labelled, parts that are left out, and their order."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from kinodex.agent.errors import InvalidReply
from kinodex.agent.models.completion import parse_reply
from kinodex.agent.protocol import Segment, ShownFrame
from kinodex.agent.variants.videoseek_requests import FocusClip, OverviewVideo, SkimRange
from tests.support.every_request import FILM

FRAMES = tuple(ShownFrame(FILM.video_id, at, 10.0 * at, 8, 8, b"x") for at in (1, 2, 3))
LABELLED = tuple(replace(frame, label=label) for frame, label in zip(FRAMES, (4, 7, 9), strict=True))
PART = Segment(1, FILM.video_id, 0.0, 40.0)
SKIMMING = SkimRange(videos=(FILM,), segment=PART, query="the kite", subtitles=(), frames=FRAMES)
FOCUSING = FocusClip(videos=(FILM,), segment=PART, query="the kite", subtitles=(), frames=FRAMES)


def skimmed(*numbers: int) -> str:
    return json.dumps({"frames": [{"frame": each, "description": "a kite", "relevant": None} for each in numbers]})


@pytest.mark.parametrize(("frames", "numbers"), [(FRAMES, [1, 2, 3]), (LABELLED, [4, 7, 9])])
def test_frames_are_known_by_the_numbers_that_are_shown(frames, numbers):
    request = replace(SKIMMING, frames=frames)
    reply, invalid = parse_reply(skimmed(*numbers), request)
    assert reply and invalid is None and request.missing(reply) is None
    assert parse_reply(skimmed(5), request)[0] is None
    assert [each["frame"] for each in request.example()["frames"]] == numbers


@pytest.mark.parametrize(("frames", "numbers"), [(FRAMES, [1, 2, 3]), (LABELLED, [4, 7, 9])])
def test_frames_that_are_left_out_are_asked_for_alone(frames, numbers):
    request = replace(SKIMMING, frames=frames)
    first, _ = parse_reply(skimmed(numbers[1]), request)
    assert first
    rest = request.missing(first)
    assert rest and rest.frames == (frames[0], frames[2])
    second, invalid = parse_reply(json.dumps(rest.example()), rest)
    assert second and invalid is None
    assert [each.frame for each in request.join(first, second).frames] == numbers


def test_descriptions_that_say_nothing_are_no_reply():
    request = OverviewVideo(videos=(FILM,), segment=PART, subtitles=(), frames=FRAMES)
    said = {"frames": [{"frame": each, "description": " "} for each in (1, 2, 3)]}
    assert parse_reply(json.dumps(said), request) == (None, "no frame is described; give one description for each")


def test_reasons_come_before_the_finding_and_its_frames_are_read_leniently():
    assert list(FOCUSING.schema()["properties"]) == ["reasoning", "found", "answer", "frames"]
    reply, _ = parse_reply('{"found": true, "answer": "red", "frames": "1 and 3"}', FOCUSING)
    assert reply and reply.frames == [1, 3]
    with pytest.raises(InvalidReply, match="there is no frame 9; the numbers are 1 to 3"):
        FOCUSING.check(reply.model_copy(update={"frames": [9]}))
    with pytest.raises(InvalidReply, match="the answer is empty"):
        FOCUSING.check(reply.model_copy(update={"answer": " "}))
