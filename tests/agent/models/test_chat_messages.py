"""Chat messages of a request: its text, its frames in order with their times, and its conversation."""

from __future__ import annotations

import base64
import json
from dataclasses import replace

from agent.core.protocol import Turn
from tests.support.chat_server import ChatServer, calling
from tests.support.wire import ANSWER, GO, SCORES, Walk, ask, decide, frame, score


def test_frames_arrive_in_order_after_their_times_and_no_larger_than_the_role_allows() -> None:
    frames = (frame(3, time_s=2.96, size=(640, 360)), frame(12, time_s=12.0), frame(31, time_s=31.04, size=(90, 160)))
    with ChatServer(lambda _: SCORES) as server:
        [exchange] = ask(server, score(frames), image_side_px=160)
    assert server.problems == []
    assert [sent.label for sent in server.seen[0].frames] == [
        "frame 1 at 2.96 s",
        "frame 2 at 12.00 s",
        "frame 3 at 31.04 s",
    ]
    assert [(sent.width_px, sent.height_px) for sent in server.seen[0].frames] == [(160, 90), (64, 48), (90, 160)]
    assert exchange.reply is not None
    assert [each.score for each in exchange.reply.segments] == [10, 20, 30]


def test_frames_within_the_limit_are_sent_byte_for_byte() -> None:
    shown = frame(5)
    with ChatServer(lambda _: ANSWER) as server:
        ask(server, replace(decide(), frames=(shown,)))
    url = server.seen[0].body["messages"][0]["content"][-1]["image_url"]["url"]
    assert base64.b64decode(url.partition(",")[2]) == shown.jpeg


def test_frames_of_several_videos_are_told_apart() -> None:
    frames = (frame(1), frame(2, video="b" * 32))
    with ChatServer(lambda _: SCORES) as server:
        ask(server, score(frames))
    labels = [sent.label for sent in server.seen[0].frames]
    assert labels == ["frame 1 at 1.00 s of video aaaaaaaaaaaa", "frame 2 at 2.00 s of video bbbbbbbbbbbb"]


def test_a_conversation_is_plain_turns() -> None:
    turns = (Turn("assistant", json.dumps(GO)), Turn("user", "You are there."))
    with ChatServer(lambda _: calling({"tool": "stop"})) as server:
        ask(server, Walk(turns=turns))
    said = [(each["role"], each["content"]) for each in server.seen[0].body["messages"][1:]]
    assert said == [("assistant", json.dumps(GO)), ("user", "You are there.")]


def test_two_turns_of_one_speaker_are_one_message() -> None:
    turns = (Turn("user", "One."), Turn("user", "Two."), Turn("assistant", "Three."), Turn("user", "Four."))
    with ChatServer(lambda _: calling({"tool": "stop"})) as server:
        ask(server, Walk(turns=turns))
    first, *said = [(each["role"], each["content"]) for each in server.seen[0].body["messages"]]
    assert first[1].endswith("\n\nOne.\n\nTwo.")
    assert said == [("assistant", "Three."), ("user", "Four.")]
