"""`kinodex add summaries`: written once, found by words, retried, renewed; by an endpoint, a local model, on Ray."""

from __future__ import annotations

import json

import pytest

from kinodex.index.library import Library
from kinodex.jobs.add.run import add
from kinodex.jobs.add.summaries import Summaries
from tests.support.command import json_of
from tests.support.libraries.random_library import spoken
from tests.support.scenes.chaptered_film import PLACES, make_film
from tests.support.servers.chat_server import ChatServer


@pytest.fixture
def library(tmp_path) -> Library:
    return make_film(tmp_path / "library", "aa", "bb")


def contents(body: dict) -> dict:
    """Name the place that is spoken of."""
    text = str([message["content"] for message in body["messages"]])
    place = next((place for place in PLACES if place in text), "place")
    return {"title": f"At the {place}", "summary": f"A {place} is seen for a minute."}


def silent_about(*places: str):
    def reply(body: dict) -> dict:
        told = contents(body)
        return {"title": "", "summary": ""} if any(place in told["title"] for place in places) else told

    return reply


def command(library: Library, server: ChatServer, *more: object) -> tuple[object, ...]:
    return ("add", "summaries", library.uri, "--model", "tester", "--base-url", server.base_url, *more)


def test_summaries_are_made_once_and_found_by_words(kinodex, library):
    with ChatServer(contents) as server:
        made = json_of(kinodex, *command(library, server, "--input-price", 2.0))
        again = kinodex(*command(library, server))
        asked = len(server.seen)
    assert server.problems == []
    rows = library.scenes.rows("film aa")
    assert [row.title for row in rows if row.level == "scene"] == [f"At the {place}" for place in PLACES]
    assert [row.start_s for row in rows if row.level == "scene"] == [0.0, 60.0, 120.0, 180.0]
    assert made["added"] == 2 and made["rows"] == len(rows) + len(library.scenes.rows("film bb"))
    assert 0 < made["usage"]["cost"] <= made["usage"]["input_tokens"] * 2e-6  # equal requests are paid for once
    assert asked <= made["rows"]
    assert again.code == 0 and "nothing to do: every video has summaries by" in again.out
    assert server.seen[0].schema == "PartSummary"
    assert {hit.video_id for hit in library.search.chapters("harbour")} == {"aa", "bb"}
    assert [fact.stage for fact in library.info().added] == ["captions", "summaries"]


def test_parts_without_a_title_are_told_and_retried(kinodex, library):
    with ChatServer(silent_about("kitchen")) as server:
        ran = kinodex(*command(library, server, "--video", "film aa"))
    assert ran.code == 0
    assert "got no title that could be used" in ran.out
    assert library.scenes.untitled("tester") == ["aa"]
    assert library.ingest_log.failures()[0].stage == "summaries"
    with ChatServer(contents) as server:
        made = json_of(kinodex, *command(library, server, "--video", "film aa", "--retry-failed"))
    assert made["added"] == 1
    assert library.scenes.untitled("tester") == []
    assert "At the kitchen" in [row.title for row in library.scenes.rows("film aa")]
    assert library.ingest_log.failures() == []


def test_newer_words_renew_summaries_where_that_is_asked_for(kinodex, library):
    with ChatServer(contents) as server:
        json_of(kinodex, *command(library, server))
        library.additions.add_speech({"aa": [spoken(3, "Here it is warm.")]}, "whisper")
        library.additions.complete("speech", "whisper", {"aa": 1}, {})
        assert "nothing to do" in kinodex(*command(library, server)).out
        before = len(library.scenes.rows("film aa"))
        made = json_of(kinodex, *command(library, server, "--renew"))
        assert made["added"] == 1 and library.scenes.outdated("tester") == []
        assert len(library.scenes.rows("film aa")) == before
        assert "Here it is warm." in server.seen[-1].text or any("warm" in seen.text for seen in server.seen)
        assert json_of(kinodex, *command(library, server, "--renew"))["added"] == 0


def test_titles_that_are_there_stay_where_a_renewal_gives_none(kinodex, library):
    with ChatServer(contents) as server:
        json_of(kinodex, *command(library, server, "--video", "film aa"))
    before = library.scenes.rows("film aa")
    library.additions.add_speech({"aa": [spoken(3, "Here it is warm.")]}, "whisper")
    library.additions.complete("speech", "whisper", {"aa": 1}, {})
    with ChatServer(lambda body: {"title": "", "summary": ""}) as server:
        ran = kinodex(*command(library, server, "--renew", "--video", "film aa"))
    assert ran.code == 3
    assert "no scene or chapter got a title that could be used; those that were there before stay" in ran.out
    assert library.scenes.rows("film aa") == before
    assert library.scenes.outdated("tester") == ["aa"], "the next run tries again"


def test_titles_and_summaries_are_stored_as_one_line_each(kinodex, library):
    title, summary = "Kites\n\n00:00:01.000 --> 00:00:05.000\nin the wind", "Kites\x00 fly.\r\n\x1b[31mIt is windy."
    wild = {"title": title, "summary": summary}
    with ChatServer(lambda body: wild) as server:
        json_of(kinodex, *command(library, server, "--video", "film aa"))
    rows = library.scenes.rows("film aa")
    assert {row.title for row in rows} == {"Kites 00:00:01.000 --> 00:00:05.000 in the wind"}
    assert {row.text for row in rows} == {"Kites fly. [31mIt is windy."}


def test_other_settings_of_one_model_are_refused(kinodex, library):
    with ChatServer(contents) as server:
        json_of(kinodex, *command(library, server, "--video", "film aa"))
        ran = kinodex(*command(library, server, "--frames-a-scene", 2))
    assert ran.code == 2
    assert "--frames-a-scene 2" in ran.error_line and "kinodex remove added" in ran.error_line


def test_summaries_are_removed(kinodex, library):
    with ChatServer(contents) as server:
        json_of(kinodex, *command(library, server))
    assert kinodex("remove", "added", library.uri, "summaries", "tester", "--yes").code == 0
    assert library.scenes.rows("film aa") == []
    assert library.tables.count("scenes") == 0


def test_a_local_model_of_words(kinodex, library, tiny_model):
    ran = kinodex(
        "add",
        "summaries",
        library.uri,
        "--model",
        tiny_model("llama"),
        "--video",
        "film aa",
        "--max-new-tokens",
        4,
        "--json",
    )
    made = json.loads(ran.out)
    assert made["failed"] == 0 and made["rows"] > 4
    assert {row.level for row in library.scenes.rows("film aa")} == {"scene", "chapter"}


@pytest.mark.ray
@pytest.mark.slow
def test_summaries_on_ray_are_those_of_one_process(library, ray_cluster):
    from kinodex.jobs.workers import ray_executor

    with ChatServer(contents) as server:
        stage = Summaries("tester", server.base_url, batch=4)
        with ray_executor(2, ray_cluster.address) as executor:
            report = add(library, stage, executor=executor)
    assert report.failed == 0
    titles = [row.title for row in library.scenes.rows("film bb") if row.level == "scene"]
    assert titles == [f"At the {place}" for place in PLACES]
