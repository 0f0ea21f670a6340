"""`kinodex ground`: ranges as a table, as JSON, as a file and as films."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from tests.support.command import Kinodex, bad, json_of


def test_ranges_are_printed_and_written_as_a_table(kinodex: Kinodex, library: Path, tmp_path: Path) -> None:
    table = tmp_path / "ranges.csv"
    made = json_of(kinodex, "ground", library, "a boat", "--least", 0, "--most", 3, "--csv", table)
    assert made["present"]
    assert len(made["ranges"]) == 3
    rows = list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))
    assert len(rows) == 3
    assert all(row["label"] == "a boat" for row in rows)
    shown = kinodex("ground", library, "a boat", "--least", 0, "--video", "film-02")
    assert shown.code == 0
    assert shown.out.startswith(("1 range", "2 ranges", "3 ranges", "4 ranges", "5 ranges"))
    assert "film-02" in shown.out and "film-01" not in shown.out


def test_an_event_that_is_nowhere_is_said_to_be_nowhere(kinodex: Kinodex, library: Path, tmp_path: Path) -> None:
    ran = kinodex("ground", library, "a boat", "--least", 99, "--clip", tmp_path / "none.mp4")
    assert (ran.code, list(tmp_path.glob("*.mp4"))) == (0, [])
    assert ran.out.startswith("not found: evidence ")
    assert "too weak" in ran.out


def test_an_agent_gives_the_evidence_of_its_answer(kinodex: Kinodex, library: Path) -> None:
    made = json_of(kinodex, "ground", library, "a boat", "--agent", "uniform", "--video", "film-01", "--max-frames", 4)
    assert made["by"] == "uniform"
    assert made["evidence"] is None


def test_the_ranges_are_cut_out_of_the_file(kinodex: Kinodex, library: Path, tmp_path: Path) -> None:
    arguments = "ground", library, "a boat", "--least", 0, "--video", "film-02", "--most", 1
    made = json.loads(kinodex(*arguments, "--clip", tmp_path / "boat.mp4", "--json").out)
    assert [each["error"] for each in made["clips"]] == [""]
    assert (tmp_path / "boat.mp4").stat().st_size > 1000


def test_options_that_do_not_fit_are_refused_before_the_search(kinodex: Kinodex, library: Path, tmp_path: Path) -> None:
    bad(kinodex, "ground", library, "a boat", "--model", "gpt-4o", code=2, says="without --agent")
    for option, value in {"--base-url": "http://127.0.0.1:9/v1", "--max-frames": 3}.items():
        bad(kinodex, "ground", library, "a boat", option, value, code=2, says="without --agent")
    for option, value in {"--from": "words", "--least": 2}.items():
        bad(kinodex, "ground", library, "a boat", "--agent", "uniform", option, value, code=2, says="with --agent")
    bad(kinodex, "ground", library, " ", code=2, says="empty text")
    (tmp_path / "there.csv").write_text("mine")
    bad(kinodex, "ground", library, "a boat", "--csv", tmp_path / "there.csv", code=2, says="there.csv")
    bad(kinodex, "ground", library, "a boat", "--clip", tmp_path / "film.mov", code=2, says=".mp4")
