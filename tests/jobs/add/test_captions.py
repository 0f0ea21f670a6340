"""Captions by a local model and by an endpoint: rows, search, prices, requests at once, segments without a reply."""

from __future__ import annotations

import base64
import json
import threading
from functools import partial

import pytest

from kinodex.index.rows import Scope
from kinodex.index.spaces.load import load_text_tower
from kinodex.jobs.add.run import add
from kinodex.jobs.add.stages import Captions
from tests.support.command import bad, json_of
from tests.support.servers.chat_server import Behaviour, ChatServer, cut_off, failing
from tests.world.drawn_space import DRAWN

BOAT = {"caption": "a boat", "confidence": 50}
BLANK, REFUSED = {"caption": " ", "confidence": 1}, failing(400, "no such picture")


@pytest.mark.slow
def test_captions_are_made_once_and_found_by_words_and_by_meaning(kinodex, library, tiny_model):
    model = tiny_model("llava")
    stage = ("add", "captions", library.uri, "--model", model, "--frames-a-segment", 2, "--max-new-tokens", 8)
    made = json_of(kinodex, *stage)
    segments = sum(row.segments for row in library.videos())
    assert (made["added"], made["failed"], made["rows"]) == (3, 0, segments)
    for row in library.videos():
        captions = library.captions(row.video_id, str(model))
        assert [c.segment_no for c in captions] == [s.segment_no for s in library.segments(row.video_id)]
        assert all(c.text and 0 < (c.confidence or 0) < 1 for c in captions)
        assert [s.caption for s in library.segments(row.video_id)] == [c.text for c in captions]

    wanted = library.captions(library.videos()[1].video_id)[1]
    by_words = library.search.captions(wanted.text, k=segments)
    assert (wanted.video_id, wanted.start_s, wanted.text) in [(hit.video_id, hit.time_s, hit.text) for hit in by_words]
    vector = load_text_tower(DRAWN).embed_text([wanted.text])[0]
    fused = library.search.hybrid(wanted.text, vector, Scope((wanted.video_id,)), k=20)
    assert any(hit.text == wanted.text for hit in fused)

    again = kinodex(*stage)
    assert again.code == 0
    assert "nothing to do: every video has captions by" in again.out
    assert library.ingest_log.runs()[0].kind == "add captions"
    assert library.ingest_log.runs()[0].report["rows"] == segments


@pytest.mark.slow
def test_segments_without_a_caption_get_one_when_asked_again(kinodex, library):
    first = library.videos()[0]
    with ChatServer(lambda body: REFUSED if "from 0.0 s to" in json.dumps(body) else BOAT) as server:
        arguments = ("add", "captions", library.uri, "--model", "tester", "--base-url", server.base_url)
        ran = kinodex(*arguments, "--video", first.title)
        assert ran.code == 3 and f"1 of {first.segments} segments got no caption that could be used" in ran.out
        assert "requests refused: 1" in ran.out and "no such picture" in ran.out
        assert [caption.segment_no for caption in library.captions(first.video_id)] == list(range(1, first.segments))
        assert [(row.stage, row.error_class) for row in library.ingest_log.failures()] == [("captions", "Incomplete")]
        server.models = ("another",)
        assert kinodex(*arguments, "--video", first.title, "--retry-failed").code == 5
        server.models, server.reply, before = ("tester",), lambda _: BOAT, len(server.seen)
        assert "nothing to do" in kinodex(*arguments, "--video", first.title).out
        retried = kinodex(*arguments, "--video", first.title, "--retry-failed", "--json")
        assert (retried.code, json.loads(retried.out)["added"]) == (0, 1)
        assert len(server.seen) == before + 1
        assert "nothing to do" in kinodex(*arguments, "--video", first.title, "--retry-failed").out
        assert [each.text for each in library.captions(first.video_id)] == ["a boat"] * first.segments
        assert library.ingest_log.failures() == []
        assert json.loads(kinodex(*arguments, "--retry-failed", "--json").out)["added"] == len(library.videos()) - 1


def answer(reply: dict | Behaviour, body: dict) -> dict | Behaviour:
    return reply


@pytest.mark.slow
def test_a_retry_in_vain_keeps_the_captions_and_counts_its_costs(kinodex, library, monkeypatch, tmp_path):
    film = library.video("film-1")
    chosen = ("--model", "tester", "--video", film.title, "--input-price", 2.0)
    with ChatServer(lambda body: cut_off("{") if "from 0.0 s to" in json.dumps(body) else BOAT) as server:
        arguments = ("add", "captions", library.uri, *chosen, "--base-url", server.base_url)
        assert json_of(kinodex, *arguments, code=3)["rows"] == film.segments - 1
        before = library.captions(film.video_id)
        monkeypatch.setenv("KINODEX_CACHE", str(tmp_path / "another"))
        for reply, requests in ((BLANK, 2), (REFUSED, 1)):
            server.reply, sent = partial(answer, reply), len(server.seen)
            ran = kinodex(*arguments, "--retry-failed", "--json")
            usage = json.loads(ran.out)["usage"]
            assert (ran.code, len(server.seen) - sent) == (3, requests), "the others are not paid for again"
            assert library.captions(film.video_id) == before and len(before) == film.segments - 1
            assert (usage["input_tokens"] > 0) == (usage["cost"] > 0) == (reply is BLANK)
        server.reply = lambda _: BOAT
        assert json_of(kinodex, *arguments, "--retry-failed")["rows"] == film.segments
    assert len(library.captions(film.video_id)) == film.segments


@pytest.mark.slow
def test_a_video_of_which_all_is_refused_fails_alone_and_is_tried_again(kinodex, library):
    first, *others = library.videos()
    shown = [
        base64.b64encode(frame.jpeg).decode()
        for frame in library.frames(first.video_id, library.vectors(first.video_id).frame_no.tolist())
    ]
    refusal = failing(400, "no such pictures")
    with ChatServer(lambda _: BOAT) as server:
        server.reply = lambda body: refusal if any(jpeg in json.dumps(body) for jpeg in shown) else BOAT
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
        return BOAT

    with ChatServer(reply) as server:
        options = ("--model", "tester", "--base-url", server.base_url, "--batch", 2)
        assert kinodex("add", "captions", library.uri, *options).code == 0
    assert most == 2


def test_a_video_may_be_asked_about_by_itself(library, tmp_path, monkeypatch):
    monkeypatch.setenv("KINODEX_CACHE", str(tmp_path / "cache"))
    with ChatServer(lambda _: BOAT) as server:
        stage = Captions(model="tester", base_url=server.base_url)
        video = library.videos()[0]
        with stage.open(library) as addition:
            alone = addition.rows_of(video)
        assert add(library, stage, [video.video_id]).rows == alone.count == video.segments


@pytest.mark.slow
def test_a_wrong_key_model_or_address_ends_the_run(kinodex, library):
    with ChatServer(lambda _: BOAT, key="right") as server:
        arguments = ("captions", library.uri, "--base-url", server.base_url)
        ran = kinodex("add", *arguments, "--model", "tester")
        assert (ran.code, "check the key" in ran.error_line) == (5, True)
        server.key = None
        ran = kinodex("add", *arguments, "--model", "other")
        assert (ran.code, "has no model 'other'" in ran.error_line) == (5, True)
    for url, code, says in (
        ("ftp://nobody", 2, "must look like http://HOST:PORT/v1"),
        ("https://api.example.com/v1", 5, "no key for api.example.com"),
    ):
        bad(kinodex, "add", "captions", library.uri, "--model", "m", "--base-url", url, code=code, says=says)
    assert library.ingest_log.failures() == []
