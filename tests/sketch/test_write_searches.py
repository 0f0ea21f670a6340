"""Searches of films with exact truth."""

from __future__ import annotations

import json
from pathlib import Path

from kinodex.jobs.eval.benchmarks import read_moment_benchmark
from kinodex.sketch.script import Script, write_script
from tests.sketch.train import write_searches


def films() -> dict[str, Script]:
    return {f"film-0{number}.mp4": write_script(f"film-0{number}", 240, 7) for number in (1, 2)}


def test_half_of_the_searches_are_of_what_no_film_shows() -> None:
    rows = write_searches(films(), 40, 7)
    assert len(rows) == 40
    assert sum(row.get("absent", False) for row in rows) == 20
    assert len({row["text"] for row in rows}) == 40
    assert rows == write_searches(films(), 40, 7)
    assert rows != write_searches(films(), 40, 8)


def test_ranges_hold_the_shots_that_say_so_and_no_other(tmp_path: Path) -> None:
    """Every shot of a title card's word lies in a range of its search, and no range ends within a shot."""
    scripts = films()
    borders = {
        video: {shot.start_s for shot in script.shots} | {script.duration_s} for video, script in scripts.items()
    }
    for row in write_searches(scripts, 40, 7):
        for video, start_s, end_s in row.get("relevant", []):
            assert {start_s, end_s} <= borders[video]
        if row["text"].startswith("a title card that says ") and "relevant" in row:
            shown = [
                [video, shot.start_s, shot.end_s]
                for video, script in scripts.items()
                for shot in script.shots
                if shot.description == row["text"]
            ]
            assert row["relevant"] == shown
    file = tmp_path / "searches.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in write_searches(scripts, 10, 7)))
    read = read_moment_benchmark("own", file)
    assert (len(read.items), read.problems) == (10, ())


def test_searches_of_one_film_name_it() -> None:
    name, script = next(iter(films().items()))
    assert {row["video"] for row in write_searches({name: script}, 10, 7)} == {name}
