"""Films of shots that are drawn by themselves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.world.sketch.films import write_films


def test_films_come_with_scripts_questions_and_subtitles(films: Path) -> None:
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
        write_films(tmp_path, 0.02, 3, on_progress=interrupt)
    assert not (tmp_path / "questions.jsonl").exists()


@pytest.mark.slow
def test_the_same_seed_writes_the_same_bytes(films: Path, tmp_path: Path) -> None:
    write_films(tmp_path, 0.0, 3, minutes=0.02 * 60 / 3)  # the first of the three
    again = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.name != "questions.jsonl"}
    assert len(again) == 3 and again == {name: (films / name).read_bytes() for name in again}
