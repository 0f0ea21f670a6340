"""Texts of which the space `photo`, a table of English words, knows no word: every face says so, and ranks nothing."""

from __future__ import annotations

import asyncio
import json
from html import unescape
from pathlib import Path

import httpx2
import pytest
from mcp import Client

import kinodex as package
from tests.acceptance import CAPTIONS, FRAMES, IN_HTTP, IN_MCP
from tests.acceptance.conftest import carry_out, running
from tests.support.command import Kinodex, bad, json_of
from tests.support.libraries.photograph_library import photograph_library

UNKNOWN = ("собака", "山", "xqzjv", "?!")
CAT = "猫が寝ている"


def said(text: str) -> str:
    """The one line of all faces."""
    return f"photo is a table of English words and knows none in {text!r}"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten seconds of a cat, then of mountains, with a caption that the space cannot read, and one that it can."""
    folder = tmp_path_factory.mktemp("unknown")
    place = photograph_library(folder)
    rows = [{"video": "film", "start_s": 0, "end_s": 4, "text": CAT}, {"video": "film", "start_s": 4, "end_s": 8}]
    rows[1]["text"] = "it sleeps"
    (folder / "captions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    carry_out("import", "captions", folder / "captions.jsonl", place, "--model", "hand")
    return place


@pytest.mark.parametrize("text", UNKNOWN)
def test_a_search_has_no_frames_and_a_note(kinodex: Kinodex, library: Path, text: str) -> None:
    opened = package.open(library)
    for place in ("all", FRAMES):
        hits = opened.search(text, in_=place)
        assert (list(hits), hits.notes) == ([], (f"pictures are not compared with the words: {said(text)}",))
        assert said(text) in unescape(hits._repr_html_())
        ran = kinodex("search", library, text, "--in", place, "--json")
        assert (ran.code, ran.out.strip()) == (0, "[]") and said(text) in ran.err
    with pytest.raises(package.LibraryError, match="knows none in"):
        opened.embed(text)


def test_words_are_found_all_the_same(kinodex: Kinodex, library: Path) -> None:
    opened = package.open(library)
    for place in ("all", CAPTIONS, "words"):
        (hit,) = opened.search(CAT, in_=place)
        assert (hit.text, hit.found_in, hit.cosine) == (CAT, CAPTIONS, None)
    found = opened.ground(CAT)
    assert [each.source for each in found.candidates] == ["words"] and said(CAT) in found.claim
    assert kinodex("maintain", library, "--check", "--deep").code == 0


def test_captions_of_unknown_words_come_into_the_space_without_vectors(library: Path, tmp_path: Path) -> None:
    place = tmp_path / "words"
    package.ingest(library.parent / "film.mp4", library=place, space="none")
    carry_out("import", "captions", library.parent / "captions.jsonl", place, "--model", "hand")
    opened = package.open(place)
    opened.add("vectors", space="photo")
    assert opened.search("a cat", in_=FRAMES, k=1)[0].time_s < 10
    assert {hit.text: hit.cosine is None for hit in opened.search(CAT, in_=CAPTIONS)} == {CAT: True}
    assert [hit.text for hit in opened.search("sleeping", in_=CAPTIONS)] == ["it sleeps"]
    carry_out("maintain", place, "--check", "--deep")


def test_a_text_that_is_known_in_part_is_searched_as_it_is(library: Path) -> None:
    opened = package.open(library)
    for text, at_s in (("猫 a cat", 0.0), ("xqzjv mountains", 10.0)):
        hits = opened.search(text, in_=FRAMES, k=1)
        assert hits.notes == () and at_s <= hits[0].time_s < at_s + 10
    picture = opened.frames("film", [15.0])[0].image
    beside = opened.search("山", in_=FRAMES, picture=picture, k=1)
    assert beside[0].time_s >= 10 and said("山") in beside.notes[0]


@pytest.mark.parametrize("text", UNKNOWN)
def test_no_range_and_no_answer_is_made_of_them(kinodex: Kinodex, library: Path, text: str) -> None:
    found = json_of(kinodex, "ground", library, text)
    assert (found["ranges"], found["weaker"]) == ([], []) and said(text) in found["claim"]
    for options in ((), ("--option", text, "--option", "犬")):
        answer = json_of(kinodex, "ask", library, text, *options)
        assert (answer["status"], answer["evidence"]) == ("insufficient_evidence", [])
        assert "photo is a table of English words" in answer["reason"]


def test_options_that_are_known_are_told_apart_whatever_the_question(kinodex: Kinodex, library: Path) -> None:
    asked = ("ask", library, "何?", "--option", "a cat", "--option", "a red bus")
    assert json_of(kinodex, *asked)["letter"] == "A"


def test_they_are_no_standing_query_and_nothing_to_export(kinodex: Kinodex, library: Path) -> None:
    film, text = library.parent / "film.mp4", UNKNOWN[0]
    bad(
        kinodex,
        "watch",
        film,
        "--live",
        "--library",
        library,
        "--query",
        text,
        "--threshold",
        0.3,
        code=2,
        says=said(text),
    )
    bad(kinodex, "export", "csv", library, "-", "--search", text, code=2, says=said(text))


@pytest.mark.slow  # starts a server
def test_the_page_and_its_requests_say_so(library: Path, tmp_path: Path) -> None:
    text = UNKNOWN[0]
    with (
        running("serve", library, "--port", 0, "--no-browser", state=tmp_path) as address,
        httpx2.Client(base_url=address, timeout=60) as client,
    ):
        found = client.get("data/libraries/0/search", params={"query": text, IN_HTTP: FRAMES}).json()
        assert (found["count"], said(text) in found["notes"][0]) == (0, True)
        assert said(text) in client.get("data/libraries/0/moments", params={"text": text}).json()["claim"]


@pytest.mark.slow  # starts a server
def test_tools_of_an_assistant_say_so(library: Path, tmp_path: Path) -> None:
    text = UNKNOWN[0]

    async def work(address: str) -> None:
        async with Client(address) as client:
            found = (await client.call_tool("search", {"query": text, IN_MCP: FRAMES})).structured_content
            assert (found["hits"], said(text) in found["notes"][0]) == ([], True)
            ground = (await client.call_tool("ground", {"text": text})).structured_content
            assert (ground["ranges"], said(text) in ground["claim"]) == ([], True)

    with running("mcp", library, "--http", "--port", 0, state=tmp_path) as address:
        asyncio.run(work(address))
