"""Search: the right film and moment by words, lines, captions, pictures and conditions, and what is refused."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import kinodex as package
from tests.acceptance import CAPTION, CAPTIONS, DETECTIONS, FACTS, FRAMES, IN_PYTHON, LINE, SPEECH, TENTS, WORDS, Fact
from tests.support.command import Kinodex, bad, json_of

IN_FRAMES: dict[str, Any] = {IN_PYTHON: FRAMES}


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.film)
def test_the_best_hit_is_the_moment_that_shows_it(kinodex: Kinodex, shown: Path, fact: Fact) -> None:
    hits = json_of(kinodex, "search", shown, fact.words, "--in", FRAMES, "-k", 3)
    assert hits[0]["title"] == fact.film and fact.covers(hits[0]["time_s"])
    (best, *_) = package.open(shown).search(fact.words, k=3, **IN_FRAMES)
    assert (best.title, best.time_s) == (hits[0]["title"], hits[0]["time_s"])


@pytest.mark.parametrize(
    ("place", "words", "found"), [(SPEECH, "code word", LINE), (WORDS, "lantern", LINE), (CAPTIONS, "walrus", CAPTION)]
)
def test_what_is_said_and_described_is_found_by_its_words(
    kinodex: Kinodex, shown: Path, place: str, words: str, found: tuple[str, str, float, float]
) -> None:
    best = json_of(kinodex, "search", shown, words, "--in", place)[0]
    assert (best["text"], best["title"], best["time_s"], best["end_s"]) == found


def test_hits_stay_in_the_part_that_is_named(kinodex: Kinodex, shown: Path) -> None:
    part = ("--video", "film-02", "--from", 5, "--to", "0:09", "--in", FRAMES, "-k", 50, "--min-gap", 0)
    hits = json_of(kinodex, "search", shown, TENTS.words, *part)
    assert [hit["time_s"] for hit in sorted(hits, key=lambda hit: hit["time_s"])] == [5.0, 6.0, 7.0, 8.0]
    again = package.open(shown).search(TENTS.words, k=50, videos="film-02", start_s=5, end_s=9, min_gap_s=0)
    assert {hit.title for hit in again} == {"film-02"}


def test_a_condition_leaves_the_other_videos_out(kinodex: Kinodex, shown: Path) -> None:
    rear = json_of(kinodex, "search", shown, TENTS.words, "--where", "camera = 'rear'", "-k", 50)
    assert {hit["title"] for hit in rear} == {"film-02"}
    front = package.open(shown).where("camera = 'front'").search(TENTS.words, k=50)
    assert {hit.title for hit in front} == {"film-01", "film-03"}


def test_a_picture_finds_its_own_frame(kinodex: Kinodex, shown: Path, tmp_path: Path) -> None:
    library = package.open(shown)
    (frame,) = library.frames("film-03", [21])
    (best, *_) = library.search(frame.image, k=1)
    assert (best.title, best.time_s) == ("film-03", 21.0)
    frame.image.save(tmp_path / "seen.png")
    assert json_of(kinodex, "search", shown, "--image", tmp_path / "seen.png", "-k", 1)[0]["time_s"] == 21.0


def test_a_vector_and_the_frame_of_a_hit(shown: Path) -> None:
    library = package.open(shown)
    (best, *_) = library.search(library.embed(TENTS.words), k=1)
    assert (best.title, TENTS.covers(best.time_s)) == (TENTS.film, True)
    frame = library.frame(best)
    assert (frame.time_s, frame.image.size) == (best.time_s, (512, 288))


def test_hits_are_apart_the_best_first_and_as_many_as_asked_for(kinodex: Kinodex, shown: Path) -> None:
    hits = json_of(kinodex, "search", shown, "a tent", "--in", FRAMES, "-k", 6, "--min-gap", 4)
    assert len(hits) == 6 and [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)
    for film in {hit["title"] for hit in hits}:
        times_s = sorted(hit["time_s"] for hit in hits if hit["title"] == film)
        assert all(later - earlier >= 4 for earlier, later in pairwise(times_s))


def test_what_a_search_refuses(kinodex: Kinodex, shown: Path, tmp_path: Path) -> None:
    for arguments, code, says in (
        ((shown, " "), 2, "empty query"),
        ((shown, "tents", "--in", "smells"), 2, f"it is one of all, {FRAMES}"),
        ((shown, "tents", "-k", 0), 2, "greater than or equal to 1"),
        ((shown, "tents", "--video", "nobody"), 2, "none of the 3 here, such as film-01"),
        ((shown, "tents", "--where", "camera == "), 2, "the columns are"),
        ((shown, "tents", "--where", "camera = 'side'"), 2, "side"),
        ((shown, "tents", "--from", "nan"), 2, "nan"),
        ((shown, "tents", "--in", DETECTIONS), 2, f"kinodex add {DETECTIONS}"),
        ((shown, "--image", tmp_path / "none.png"), 2, "none.png"),
        ((tmp_path, "tents"), 4, "there is no library"),
    ):
        bad(kinodex, "search", *arguments, code=code, says=says)


def test_python_refuses_the_same(shown: Path, tmp_path: Path) -> None:
    library = package.open(shown)
    for wrong, says in (
        ({"query": " "}, "empty query"),
        ({"query": "tents", "k": 0}, "k=0"),
        ({"query": "tents", "videos": "nobody"}, "such as film-01"),
        ({"query": "tents", IN_PYTHON: "smells"}, "smells"),
    ):
        with pytest.raises(package.KinodexError, match=says):
            library.search(**wrong)
    with pytest.raises(package.LibraryError, match="there is no library"):
        package.open(tmp_path / "none")
