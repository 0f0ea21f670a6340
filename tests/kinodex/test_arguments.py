"""Arguments of the front door: videos by name or row, questions, and places."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kinodex
from kinodex.arguments import library_place, names_of, question_of
from kinodex.jobs.errors import UsageError


def test_videos_are_named_one_or_many_by_name_or_row(library: Path) -> None:
    row = kinodex.open(library).videos()[0]
    assert names_of("film-01") == ["film-01"]
    assert names_of(row) == [row.video_id]
    assert names_of([row, "film-02"]) == [row.video_id, "film-02"]


def test_a_question_is_a_text_with_options_or_one_of_its_own() -> None:
    assert question_of("Why?", ["a", "b"]).options == ("a", "b")
    question = kinodex.Question("Why?", ("a", "b"))
    assert question_of(question, ()) is question
    with pytest.raises(UsageError):
        question_of(question, ["a", "b"])


def test_places(tmp_path: Path) -> None:
    assert library_place("~/library") == str(Path.home() / "library")
    assert library_place("s3://bucket/library") == "s3://bucket/library"


def wrong_calls(opened: kinodex.Library, folder: Path) -> dict[str, Callable[[], object]]:
    """Calls with an argument that makes no sense, each under words of the error that it has to raise."""
    nan, inf, black = float("nan"), float("inf"), np.zeros((4, 4, 3), np.uint8)
    return {
        "got k=2.5; give a whole number": lambda: opened.search("a boat", k=2.5),  # type: ignore[arg-type]
        "got k=-1; give a whole number": lambda: opened.search("a boat", k=-1),
        "got k=True": lambda: opened.search("a boat", k=True),
        f"got k={2**64}": lambda: opened.search("a boat", k=2**64),
        "got start_s='5'; give seconds": lambda: opened.search("a boat", start_s="5"),  # type: ignore[arg-type]
        "got end_s=inf": lambda: opened.search("a boat", end_s=inf),
        "got min_gap_s=nan": lambda: opened.search("a boat", min_gap_s=nan),
        "got 'x' for where to look; it is one of all": lambda: opened.search("a boat", in_="x"),
        "got where=5; give a text": lambda: opened.search("a boat", where=5),  # type: ignore[arg-type]
        "got 5 for a video": lambda: opened.search("a boat", videos=5),  # type: ignore[arg-type]
        "got an array of uint8 [0, 4, 3]": lambda: opened.search(black[:0]),
        "got a vector of complex128": lambda: opened.search(np.ones(64, complex)),
        "got a vector of <U1": lambda: opened.search(np.array(["a"])),
        "got times_s='12'; give a list": lambda: opened.frames("film-01", "12"),  # type: ignore[arg-type]
        "got times_s=[nan]": lambda: opened.frames("film-01", [nan]),
        "it is one of all, frames, words": lambda: opened.ground("a boat", in_="x"),
        "got k=0": lambda: opened.ground("a boat", k=0),
        "got every_s=0": lambda: opened.duplicates(every_s=0.0),
        "got a budget, and no agent": lambda: opened.ground("a boat", budget=kinodex.Budget(frames=3)),
        "got 5 for a question": lambda: opened.ask(5),  # type: ignore[arg-type]
        "got options=[1, 2]; give a list of 2 to 26 texts": lambda: opened.ask("Why?", [1, 2]),  # type: ignore[list-item]
        "got options='ab'": lambda: opened.ask("Why?", "ab"),
        "which is a folder": lambda: opened.ask("Why?", trace=folder),
        "or lies in none": lambda: opened.ask("Why?", trace=folder / "none" / "t.jsonl"),
        "which is no file": lambda: opened.ask("Why?", follow_up=folder / "t.jsonl"),
        "got at_once=0": lambda: opened.ask_many(["Why?"], at_once=0),
        "got settings=5; it should be": lambda: opened.ask("Why?", settings=5),  # type: ignore[arg-type]
        "sharpness=inf; it should be a finite number": lambda: opened.ask("Why?", settings={"sharpness": inf}),
        "got a budget of '5' cost; give a number above 0": lambda: kinodex.Budget(cost="5"),  # type: ignore[arg-type]
        "got a budget of inf seconds": lambda: kinodex.Budget(seconds=inf),
        "got a budget of 2.5 frames; give a whole number": lambda: kinodex.Budget(frames=2.5),  # type: ignore[arg-type]
        "got 5 for a library": lambda: kinodex.open(5),  # type: ignore[arg-type]
    }


def test_arguments_that_make_no_sense_are_refused_in_a_sentence_before_any_work(library: Path, tmp_path: Path) -> None:
    for words, call in wrong_calls(kinodex.open(library), tmp_path).items():
        with pytest.raises(kinodex.KinodexError, match=re.escape(words)):
            call()


def test_numbers_of_numpy_are_numbers(library: Path) -> None:
    opened: Any = kinodex.open(library)
    assert opened.search("a boat", k=np.int64(2), start_s=np.float32(0.0)) == opened.search("a boat", k=2, start_s=0.0)
    assert [each.time_s for each in opened.frames("film-01", np.array([2.0]))] == [2.0]
