"""Arguments of the front door: videos by name or row, questions, and places."""

from __future__ import annotations

from pathlib import Path

import pytest

import kinodex
from jobs.errors import UsageError
from kinodex.arguments import library_place, names_of, path_of, question_of


def test_videos_are_named_one_or_many_by_name_or_row(library: Path) -> None:
    row = kinodex.open(library).videos()[0]
    assert names_of("film-01") == ["film-01"]
    assert names_of(row) == [row.video_id]
    assert names_of([row, "film-02"]) == [row.video_id, "film-02"]


def test_a_question_is_a_text_with_options_or_one_of_its_own() -> None:
    assert question_of("Why?", ["a", "b"]).options == ("a", "b")
    question = kinodex.Question("Why?", ("a", "b"))
    assert question_of(question, ()) is question
    for text, options in (("Why?", "ab"), (question, ["a", "b"])):
        with pytest.raises(UsageError):
            question_of(text, options)


def test_places_and_paths() -> None:
    assert library_place("~/library") == str(Path.home() / "library")
    assert library_place("s3://bucket/library") == "s3://bucket/library"
    assert (path_of("a/b"), path_of(None)) == (Path("a/b"), None)
