"""`kinodex search`: by words, by a picture, in captions, detections and other spaces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kinodex.index.library import Library
from tests.support.command import Kinodex, bad


def test_search_finds_frames_and_words(kinodex: Kinodex, library: Path) -> None:
    hits = json.loads(kinodex("search", library, "a blue boat", "-k", 4, "--min-gap", 3, "--json").out)
    assert len(hits) == 4
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)
    spoken = json.loads(kinodex("search", library, "code word", "--only", "transcript", "--json").out)
    assert spoken
    assert "code word" in spoken[0]["text"]
    ranged = json.loads(
        kinodex("search", library, "a boat", "--video", "film-02", "--from", 5, "--to", 9, "--json").out
    )
    assert ranged
    assert all(5 <= hit["time_s"] < 9 for hit in ranged)


def test_search_by_picture_finds_that_picture(kinodex: Kinodex, library: Path, tmp_path: Path) -> None:
    written = json.loads(kinodex("frames", library, "--video", "film-03", "--at", 7, "--out", tmp_path, "--json").out)
    hits = json.loads(kinodex("search", library, "--image", written[0]["path"], "-k", 1, "--json").out)
    assert hits[0]["video_id"] == written[0]["video_id"]
    assert hits[0]["score"] > 0.98


def test_a_search_of_what_was_never_added_is_told_how_to_add_it(kinodex: Kinodex, library: Path) -> None:
    bad(kinodex, "search", library, "a walrus", "--only", "captions", code=2, says="kinodex add captions")
    bad(kinodex, "search", library, "--label", "walrus", code=2, says="kinodex add detections")


def test_search_looks_into_captions_detections_and_other_spaces(kinodex: Kinodex, described: Path) -> None:
    def hits(*arguments: object) -> Any:
        ran = kinodex("search", described, *arguments, "--json")
        assert ran.code == 0, ran.err
        return json.loads(ran.out)

    assert hits("a walrus", "--only", "captions", "-k", 1)[0]["text"] == "a walrus plays chess"
    assert any(hit["text"] == "a walrus plays chess" for hit in hits("a walrus plays chess"))
    assert [hit["score"] for hit in hits("--label", "walrus")] == pytest.approx([0.9, 0.3])
    assert len(hits("walrus", "--only", "detections", "--min-score", 0.5)) == 1
    own = Library.open(str(described)).fingerprint
    assert hits("a boat", "--space", own.digest) == hits("a boat")
    (other,) = (space for space in Library.open(str(described)).spaces() if space.digest != own.digest)
    assert any(hit["text"] == "a walrus plays chess" for hit in hits("a walrus plays chess", "--space", other.name))
    found = hits("a cat", "--space", other.name, "--only", "frames", "--min-gap", 0, "-k", 1000)
    film = Library.open(str(described)).video("film-02")
    assert (len(found), {hit["video_id"] for hit in found}) == (film.frames, {film.video_id})
    assert "detection" in kinodex("search", described, "--label", "walrus").out
    assert other.digest in kinodex("info", described).out

    at = ("search", described)
    bad(kinodex, *at, "a boat", "--space", "ViT-B-32/openai", code=2, says="builtin")
    bad(kinodex, *at, "a boat", "--in", "sounds", code=2, says="captions")
    bad(kinodex, *at, "a boat", "--only", "captions", "--label", "walrus", code=2, says="--label")
    bad(kinodex, *at, "a boat", "--in", "speech", "--space", "builtin", code=2, says="--in speech")


def test_queries_that_are_refused(kinodex: Kinodex, library: Path, tmp_path: Path) -> None:
    bad(kinodex, "search", library, "  ", code=2, says="query")
    bad(kinodex, "search", library, "--image", tmp_path / "none.png", code=2, says="none.png")
