"""Add, import, remove, set: what is stored beside the frames, found by searches, and taken out again."""

from __future__ import annotations

import json
from pathlib import Path

import kinodex as package
from tests.acceptance import CAPTIONS, SPEECH
from tests.support.command import Kinodex, bad, json_of
from tests.support.servers.chat_server import ChatServer

SEEN = "a heron stands on one leg"


def captioner(server: ChatServer) -> tuple[str, ...]:
    return ("--model", "tester", "--base-url", server.base_url)


def test_captions_of_a_model_are_stored_once_and_found(kinodex: Kinodex, own: Path) -> None:
    with ChatServer(lambda body: {"caption": SEEN, "confidence": 90}) as server:
        add = ("add", CAPTIONS, own, "--video", "film-02", *captioner(server))
        assert kinodex(*add, "--dry-run").code == 0 and server.seen == []
        assert json_of(kinodex, *add)["rows"] == 7
        calls = len(server.seen)
        assert "nothing to do" in kinodex(*add).out and len(server.seen) == calls > 0
    assert server.problems == []
    hit = json_of(kinodex, "search", own, "heron", "--in", CAPTIONS)[0]
    assert (hit["text"], hit["title"]) == (SEEN, "film-02")
    library = package.open(own)
    assert [row.text for row in library.captions("film-02")] == [SEEN] * 7, "of several models, those of the newest"
    assert len(library.captions("film-03")) == 1, "those of other videos stay"


def test_speech_is_imported_and_read(kinodex: Kinodex, own: Path, tmp_path: Path) -> None:
    said = tmp_path / "said.jsonl"
    said.write_text(json.dumps({"video": "film-03", "start_s": 3, "end_s": 5, "text": "the ferry leaves at noon"}))
    report = json_of(kinodex, "import", SPEECH, said, own, "--model", "hand")
    assert [each["rows"] for each in report["outcomes"]] == [1]
    hit = json_of(kinodex, "search", own, "ferry", "--in", SPEECH)[0]
    assert (hit["title"], hit["time_s"], hit["end_s"]) == ("film-03", 3.0, 5.0)
    said.write_text("{")
    bad(kinodex, "import", SPEECH, said, own, "--model", "other", code=2, says="said.jsonl")


def test_what_was_added_is_removed_and_nothing_else(kinodex: Kinodex, own: Path) -> None:
    bad(kinodex, "remove", "added", own, CAPTIONS, "hand", code=2, says="give --yes")
    assert kinodex("remove", "added", own, CAPTIONS, "hand", "--yes").code == 0
    library = package.open(own)
    assert library.captions("film-02") == [] and library.info().frames == 90
    bad(kinodex, "search", own, "walrus", "--in", CAPTIONS, code=2, says=f"kinodex add {CAPTIONS}")


def test_a_video_is_removed_with_all_that_it_has(kinodex: Kinodex, own: Path) -> None:
    assert kinodex("remove", "videos", own, "film-02", "--yes").code == 0
    assert [row.title for row in package.open(own).videos()] == ["film-01", "film-03"]
    assert [hit["title"] for hit in json_of(kinodex, "search", own, "calm", "--in", CAPTIONS)] == ["film-03"]
    assert json_of(kinodex, "maintain", own, "--check")["problems"] == []


def test_columns_of_videos_are_set_and_counted(kinodex: Kinodex, own: Path, tmp_path: Path) -> None:
    table = tmp_path / "days.csv"
    table.write_text("video,day\nfilm-01,2026-03-01\nfilm-03,2026-03-02\n")
    assert kinodex("set", "metadata", own, table).code == 0
    library = package.open(own)
    assert [row.title for row in library.where("day > '2026-03-01'").videos()] == ["film-03"]
    assert {facet.name for facet in library.facets()} >= {"camera", "day"}
    table.write_text("video,day\nfilm-99,1\n")
    told = json_of(kinodex, "set", "metadata", own, table, code=3)
    assert (told["videos"], ["film-99" in each for each in told["unmatched"]]) == (0, [True])


def sharpness(pictures):
    return [float(picture.std()) for picture in pictures]


def test_a_function_of_ones_own_makes_a_column(own: Path) -> None:
    library = package.open(own)
    report = library.map(sharpness, videos="film-01")
    assert report.rows == 30
    column = library.mapped("sharpness")
    assert column.num_rows == 30 and min(column["sharpness"].to_pylist()) > 0
    assert library.map(sharpness, videos="film-01").rows == 0, "it is there"


def test_what_add_refuses(kinodex: Kinodex, shown: Path, tmp_path: Path) -> None:
    nobody = ("--model", "m", "--base-url", "http://127.0.0.1:9/v1")
    for arguments, code, says in (
        ((CAPTIONS, shown), 2, "--model"),
        ((CAPTIONS, tmp_path / "none", *nobody), 4, "there is no library"),
        ((CAPTIONS, shown, *nobody, "--video", "nobody"), 2, "such as film-0"),
        ((CAPTIONS, shown, *nobody, "--frames-a-segment", 0), 2, "greater than or equal to 1"),
        ((CAPTIONS, shown, *nobody), 5, "nobody answers at"),
    ):
        bad(kinodex, "add", *arguments, code=code, says=says)
    assert kinodex("add", "smells", shown).code == 2
