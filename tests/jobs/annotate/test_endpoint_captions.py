"""Captions by an endpoint: segments without a usable reply, and rejected requests alone."""

from __future__ import annotations

import base64
import json

import pytest

from tests.support.command import json_of
from tests.support.servers.chat_server import Behaviour, ChatServer, cut_off, failing

BOAT = {"caption": "a boat", "confidence": 50}


@pytest.mark.parametrize("bad", [cut_off("{"), {"caption": " ", "confidence": 1}, failing(400, "no such picture")])
def test_segments_without_a_caption_get_one_when_asked_again(kinodex, library, bad):
    boat = BOAT
    first = library.videos()[0]
    with ChatServer(lambda body: bad if "from 0.0 s to" in json.dumps(body) else boat) as server:
        arguments = ("add", "captions", library.uri, "--model", "tester", "--base-url", server.base_url)
        assert f"1 of {first.segments} segments got no caption" in kinodex(*arguments, "--video", first.title).out
        server.models = ("another",)
        assert kinodex(*arguments, "--video", first.title, "--retry-failed").code == 5
        assert len(library.captions(first.video_id)) == first.segments - 1
        server.models, server.reply, before = ("tester",), lambda _: boat, len(server.seen)
        assert "nothing to do" in kinodex(*arguments, "--video", first.title).out
        retried = kinodex(*arguments, "--video", first.title, "--retry-failed", "--json")
        assert (retried.code, json.loads(retried.out)["added"]) == (0, 1)
        assert len(server.seen) == before + 1
        assert "nothing to do" in kinodex(*arguments, "--video", first.title, "--retry-failed").out
        assert [each.text for each in library.captions(first.video_id)] == ["a boat"] * first.segments
        assert library.ingest_log.failures() == []
        assert json.loads(kinodex(*arguments, "--retry-failed", "--json").out)["added"] == len(library.videos()) - 1


@pytest.mark.parametrize("bad", [cut_off("{"), {"caption": " ", "confidence": 1}, failing(400, "no such picture")])
def test_a_retry_in_vain_keeps_the_captions_and_counts_its_costs(kinodex, library, monkeypatch, tmp_path, bad):
    film = library.video("film-1")
    chosen = ("--model", "tester", "--video", film.title, "--input-price", 2.0)
    with ChatServer(lambda body: cut_off("{") if "from 0.0 s to" in json.dumps(body) else BOAT) as server:
        arguments = ("add", "captions", library.uri, *chosen, "--base-url", server.base_url)
        assert json_of(kinodex, *arguments)["rows"] == film.segments - 1
        before, sent = library.captions(film.video_id), len(server.seen)
        monkeypatch.setenv("KINODEX_CACHE", str(tmp_path / "another"))
        server.reply = lambda _: bad
        ran = kinodex(*arguments, "--retry-failed", "--json")
        usage = json.loads(ran.out)["usage"]
        assert library.captions(film.video_id) == before and len(before) == film.segments - 1
        assert len(server.seen) - sent == (1 if ran.code else 2)  # the others are not paid for again
        assert (usage["input_tokens"] > 0) == (usage["cost"] > 0) == (ran.code == 0)
        server.reply = lambda _: BOAT
        assert json_of(kinodex, *arguments, "--retry-failed")["rows"] == film.segments
    assert len(library.captions(film.video_id)) == film.segments


def test_a_video_that_fails_reports_what_it_cost(kinodex, library):
    def reply(body: dict) -> dict | Behaviour:
        return failing(400, "no such picture") if "from 0.0 s to" in json.dumps(body) else cut_off("{")

    with ChatServer(reply) as server:
        arguments = ("captions", library.uri, "--model", "tester", "--base-url", server.base_url)
        made = json_of(kinodex, "add", *arguments, "--video", "film-1", "--input-price", 2.0, code=3)
    assert (made["failed"], made["rows"], made["usage"]["cost"] > 0) == (1, 0, True)
    assert made["usage"] == made["outcomes"][0]["usage"] == library.ingest_log.runs()[0].report["usage"]


def test_a_segment_without_a_usable_reply_is_told_and_the_rest_is_there(kinodex, library):
    def reply(request: dict) -> dict | Behaviour:
        """Nothing for the first segment: cut off at first, then empty."""
        if "from 0.0 s to" not in json.dumps(request):
            return {"caption": "a boat", "confidence": 50}
        return {"caption": " ", "confidence": 1} if "could not" in json.dumps(request) else cut_off("{")

    with ChatServer(reply) as server:
        arguments = ("captions", library.uri, "--model", "tester", "--base-url", server.base_url)
        ran = kinodex("add", *arguments, "--video", "film-1", "--batch", 1)
    video = library.video("film-1")
    assert ran.code == 0
    assert f"1 of {video.segments} segments got no caption" in ran.out
    assert [c.segment_no for c in library.captions(video.video_id)] == list(range(1, video.segments))
    assert [(row.stage, row.error_class) for row in library.ingest_log.failures()] == [("captions", "Incomplete")]


def test_a_refused_request_costs_its_segment_alone(kinodex, library):
    bad = failing(400, "cannot read that image")
    with ChatServer(lambda body: bad if "from 0.0 s to" in json.dumps(body) else BOAT) as server:
        arguments = ("captions", library.uri, "--model", "tester", "--base-url", server.base_url)
        ran = kinodex("add", *arguments, "--video", "film-1")
    video = library.video("film-1")
    assert ran.code == 0
    assert f"1 of {video.segments} segments got no caption that could be used; requests refused: 1" in ran.out
    assert "cannot read that image" in ran.out
    assert len(library.captions(video.video_id)) == video.segments - 1


def test_a_video_of_which_all_is_refused_fails_alone_and_is_tried_again(kinodex, library):
    first, *others = library.videos()
    shown = [
        base64.b64encode(frame.jpeg).decode()
        for frame in library.frames(first.video_id, library.vectors(first.video_id).frame_no.tolist())
    ]
    bad = failing(400, "no such pictures")
    with ChatServer(lambda _: BOAT) as server:
        server.reply = lambda body: bad if any(jpeg in json.dumps(body) for jpeg in shown) else BOAT
        arguments = ("captions", library.uri, "--model", "tester", "--base-url", server.base_url)
        ran = kinodex("add", *arguments)
        assert ran.code == 3
        assert "no such pictures" in ran.out
        assert [(row.uri, row.error_class) for row in library.ingest_log.failures()] == [(first.uri, "ModelRejected")]
        assert library.additions.pending("captions", "tester") == [first]
        assert all(len(library.captions(row.video_id)) == row.segments for row in others)
        server.reply = lambda _: BOAT
        assert json_of(kinodex, "add", *arguments)["added"] == 1
    assert (library.ingest_log.failures(), library.additions.pending("captions", "tester")) == ([], [])
