"""Work at an endpoint: requests of several videos together, in order, all ended at once."""

from __future__ import annotations

import json
import threading

from kinodex.jobs.add.captions import Captions
from kinodex.jobs.add.run import add
from tests.support.servers.chat_server import Behaviour, ChatServer, failing

LIMIT_S = 120.0
"""Far more than a busy machine needs; only a test that fails waits for it."""
BOAT = {"caption": "a boat", "confidence": 50}


def test_short_videos_fill_an_endpoint_together_and_stay_in_order(kinodex, library):
    segments = sum(row.segments for row in library.videos())
    assert all(row.segments < segments for row in library.videos())
    together = threading.Barrier(segments)

    def reply(request: dict) -> dict:
        together.wait(LIMIT_S)  # broken, and so a reply that is none, unless all are under way at once
        return {"caption": f"a boat {hash(json.dumps(request))}", "confidence": 50}

    with ChatServer(reply) as server:
        ran = kinodex("add", "captions", library.uri, "--model", "tester", "--base-url", server.base_url, "--json")
    assert ran.code == 0, ran.err
    assert not together.broken
    videos = library.videos()
    assert [each["video_id"] for each in json.loads(ran.out)["outcomes"]] == [row.video_id for row in videos]
    for row in videos:
        numbers = [caption.segment_no for caption in library.captions(row.video_id)]
        assert numbers == [segment.segment_no for segment in library.segments(row.video_id)]


def test_no_more_requests_at_once_than_were_asked_for(kinodex, library):
    lock, under_way, most = threading.Lock(), 0, 0

    def reply(request: dict) -> dict:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        threading.Event().wait(0.02)
        with lock:
            under_way -= 1
        return {"caption": "a boat", "confidence": 50}

    with ChatServer(reply) as server:
        options = ("--model", "tester", "--base-url", server.base_url, "--batch", 2)
        assert kinodex("add", "captions", library.uri, *options).code == 0
    assert most == 2


def test_what_is_under_way_is_not_waited_for_once_the_run_is_over(kinodex, library):
    over, waited_out = threading.Event(), []
    begun = threading.Semaphore(0)

    def reply(request: dict) -> dict | Behaviour:
        if "from 0.0 s to" in json.dumps(request) and not over.is_set() and begun.acquire(timeout=LIMIT_S):
            return failing(401, "no such key")
        begun.release()
        waited_out.append(not over.wait(LIMIT_S))
        return {"caption": "a boat", "confidence": 50}

    with ChatServer(reply) as server:
        ran = kinodex("add", "captions", library.uri, "--model", "tester", "--base-url", server.base_url)
        assert ran.code == 5
        assert waited_out == []
        over.set()
    assert library.additions.pending("captions", "tester") == library.videos()
    assert library.ingest_log.failures() == []


def test_actors_share_what_an_endpoint_may_be_asked_at_once():
    here, there = Captions("m", batch=4), Captions("m", "http://one:1/v1", batch=32)
    assert [stage.share(5).batch for stage in (here, there)] == [4, 6]
    assert there.share(100).batch == 1


def test_a_video_may_be_asked_about_by_itself(library, tmp_path, monkeypatch):
    monkeypatch.setenv("KINODEX_CACHE", str(tmp_path / "cache"))
    with ChatServer(lambda _: {"caption": "a boat", "confidence": 50}) as server:
        stage = Captions("tester", server.base_url)
        video = library.videos()[0]
        alone = stage.rows_of(library, video)
        assert add(library, stage, [video.video_id]).rows == alone.count == video.segments


def test_a_wrong_key_or_model_ends_the_run(kinodex, library):
    with ChatServer(lambda _: BOAT, key="right") as server:
        arguments = ("captions", library.uri, "--base-url", server.base_url)
        ran = kinodex("add", *arguments, "--model", "tester")
        assert (ran.code, "check the key" in ran.error_line) == (5, True)
        server.key = None
        ran = kinodex("add", *arguments, "--model", "other")
        assert (ran.code, "has no model 'other'" in ran.error_line) == (5, True)
    assert library.ingest_log.failures() == []


def test_an_endpoint_that_is_not_there_ends_the_run(kinodex, library):
    ran = kinodex("add", "captions", library.uri, "--model", "m", "--base-url", "ftp://nobody")
    assert ran.code == 2
    assert "must look like http://HOST:PORT/v1" in ran.error_line
    ran = kinodex("add", "captions", library.uri, "--model", "m", "--base-url", "https://api.example.com/v1")
    assert ran.code == 5
    assert "no key for api.example.com" in ran.error_line
    assert library.ingest_log.failures() == []
