"""Captions by a local model and by an endpoint: rows, search by words and by meaning, prices."""

from __future__ import annotations

import pytest

from kinodex.index.rows import Scope
from kinodex.index.spaces.space import load_space
from tests.support.command import json_of
from tests.support.servers.chat_server import ChatServer, in_turn


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
    vector = load_space("builtin", towers="text").embed_text([wanted.text])[0]
    fused = library.search.hybrid(wanted.text, vector, Scope((wanted.video_id,)), k=20)
    assert any(hit.text == wanted.text for hit in fused)

    again = kinodex(*stage)
    assert again.code == 0
    assert "nothing to do: every video has captions by" in again.out
    assert library.ingest_log.runs()[0].kind == "add captions"
    assert library.ingest_log.runs()[0].report["rows"] == segments


def test_captions_of_an_endpoint_with_their_price(kinodex, library):
    replies = [{"caption": f"a red kite number {n} over the sea", "confidence": 10 * n} for n in range(10)]
    with ChatServer(in_turn(*replies)) as server:
        arguments = ("captions", library.uri, "--model", "tester", "--base-url", server.base_url)
        made = json_of(kinodex, "add", *arguments, "--video", "film-1", "--batch", 1, "--input-price", 2.0)
    video = library.video("film-1")
    assert server.problems == []
    assert made["rows"] == video.segments == len(server.seen)
    assert made["usage"]["input_tokens"] > 0
    assert made["usage"]["cost"] == pytest.approx(made["usage"]["input_tokens"] * 2e-6)
    captions = library.captions(video.video_id, "tester")
    assert [(c.text, round(c.confidence or 0, 3)) for c in captions] == [
        (f"a red kite number {n} over the sea", n / 10) for n in range(video.segments)
    ]
    assert {len(seen.frames) for seen in server.seen} <= {1, 2, 3, 4}
    assert server.seen[0].schema == "Description"
    assert "from 0.0 s to" in server.seen[0].text
    assert library.search.captions("kite")[0].text in {c.text for c in captions}
