"""`kinodex sample` and `kinodex demo`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kinodex.cli.demo import HOURS, SEED
from kinodex.index.library import Library
from kinodex.sketch.sample import sample
from kinodex.sketch.script import FPS
from tests.support.command import Kinodex


def test_sample_writes_films_scripts_questions_and_subtitles(films: Path) -> None:
    names = sorted(path.name for path in films.iterdir())
    assert names == [
        "film-01.mp4",
        "film-01.script.json",
        "film-01.srt",
        "film-02.mp4",
        "film-02.script.json",
        "film-03.mp4",
        "film-03.script.json",
        "questions.jsonl",
    ]
    rows = [json.loads(line) for line in (films / "questions.jsonl").read_text().splitlines()]
    assert len({row["question_id"] for row in rows}) == len(rows) >= 12
    assert {row["video"] for row in rows} == {"film-01.mp4", "film-02.mp4", "film-03.mp4"}
    assert "code word" in (films / "film-01.srt").read_text()


def test_what_was_interrupted_has_no_questions_yet(tmp_path: Path) -> None:
    def interrupt(share: float) -> None:
        if share > 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sample(tmp_path, 0.02, 3, on_progress=interrupt)
    assert not (tmp_path / "questions.jsonl").exists()


@pytest.mark.slow
def test_the_same_seed_writes_the_same_bytes(films: Path, tmp_path: Path) -> None:
    sample(tmp_path, 0.0, 3, minutes=0.02 * 60 / 3)  # the first of the three
    again = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.name != "questions.jsonl"}
    assert len(again) == 3 and again == {name: (films / name).read_bytes() for name in again}


@pytest.mark.slow
def test_the_demonstration_runs_to_its_end(kinodex: Kinodex, tmp_path: Path) -> None:
    sample(tmp_path / "demo" / "films", HOURS, SEED, every=FPS)  # an ingest at a frame a second reads no more of them
    ran = kinodex("demo", tmp_path / "demo")
    assert ran.code == 0, ran.err
    assert "the films are there already" in ran.out
    # The README prints its last question and promises that all three go well.
    assert re.search(r"3 of 3 right, in \d+ s", ran.out)
    assert "answer    A. a yellow robot" in ran.out
    assert ran.out.count("truth") == 3
    assert len(Library.open(str(tmp_path / "demo" / "library")).videos()) == 3
    assert sorted(path.name for path in (tmp_path / "demo").glob("trace_*")) == [
        "trace_1.jsonl",
        "trace_2.jsonl",
        "trace_3.jsonl",
    ]
    assert all(path.read_bytes()[:2] == b"\xff\xd8" for path in (tmp_path / "demo" / "evidence").iterdir())
