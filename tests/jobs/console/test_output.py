"""Times, counts, tables and JSON as commands print them."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from kinodex.cli.show import show_frames, show_library
from kinodex.index.library import Library
from kinodex.jobs.errors import UsageError
from kinodex.jobs.output import (
    clock,
    console,
    counted,
    duration,
    error_console,
    plain_table,
    print_every,
    print_json,
)
from tests.support.libraries.agent_library import JPEG, make_library


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Library:
    films = {"one.mp4": ["a red kite"] * 5, "[b]two[/b].mp4": ["a blue boat"] * 5}
    return make_library(tmp_path_factory.mktemp("output") / "library", films)


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.0, "0:00.0"), (75.5, "1:15.5"), (59.96, "1:00.0"), (3675.0, "1:01:15.0")]
)
def test_clock(seconds: float, shown: str) -> None:
    assert clock(seconds) == shown


@pytest.mark.parametrize(
    ("seconds", "text"), [(2.5, "2.5 s"), (40, "40 s"), (720, "12 min"), (12600, "3.5 h"), (260_000, "3.0 days")]
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_counts_with_their_nouns() -> None:
    assert [counted(number, "frame") for number in (0, 1, 2000)] == ["0 frames", "1 frame", "2,000 frames"]


def test_a_line_is_made_only_when_it_is_printed() -> None:
    out = io.StringIO()
    made: list[float] = []

    def line(seconds: float) -> str:
        made.append(seconds)
        return f"line {len(made)} [of] a run"

    at_once = print_every(Console(file=out, width=10), every_s=0.0)
    at_once(line)
    at_once(line)
    print_every(Console(file=out), every_s=3600.0)(line)
    assert out.getvalue() == "line 1 [of] a run\nline 2 [of] a run\n"
    assert 0.0 <= made[0] <= made[1]


def test_json_has_times_and_paths_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"when": datetime(2026, 1, 2, tzinfo=UTC), "path": Path("a/b"), "title": "Übung"})
    printed = capsys.readouterr().out
    assert json.loads(printed) == {"when": "2026-01-02 00:00:00+00:00", "path": "a/b", "title": "Übung"}
    assert "Übung" in printed


def test_columns_of_numbers_are_set_to_the_right() -> None:
    table = plain_table("title", "frames")
    table.add_row("a", "1,000")
    table.add_row("long", "2")
    out = io.StringIO()
    Console(file=out, width=40).print(table)
    assert out.getvalue().splitlines()[1:] == ["a       1,000", "long        2"]


def test_a_library_as_a_table_and_as_json(two: Library, capsys: pytest.CaptureFixture[str]) -> None:
    show_library(two, None, as_json=False)
    text = capsys.readouterr().out
    assert "2 videos, 10 frames" in text
    assert "[b]two[/b].mp4" in text
    show_library(two, 1, as_json=False)
    assert "and 1 more; --limit 0 shows all" in capsys.readouterr().out
    show_library(two, 1, as_json=True)
    assert len(json.loads(capsys.readouterr().out)["videos"]) == 1


def test_frames_are_files_named_by_video_and_time(
    two: Library, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = two.video("one.mp4")
    show_frames(row, two.frames(row.video_id, [0, 3]), tmp_path / "out", as_json=False)
    names = [f"{row.video_id[:12]}_{time}.jpg" for time in ("000000.000", "000003.000")]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == names
    assert (tmp_path / "out" / names[0]).read_bytes() == JPEG
    assert capsys.readouterr().out.splitlines()[1] == f"{tmp_path / 'out' / names[1]}  3.000 s"
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="give --out a folder"):
        show_frames(row, [], tmp_path / "file", as_json=False)


def test_what_looks_like_an_emoji_code_stays_text(
    tmp_path: Path, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Vitamin :b: would become a picture of a B."""
    library = make_library(tmp_path / "library", {"Vitamin :b: :cat:.mp4": ["a red kite"]})
    show_library(library, None, as_json=False)
    assert "Vitamin :b: :cat:" in capsys.readouterr().out
    console().print(":b:", markup=False)
    error_console().print(":b:")
    assert capsys.readouterr() == (":b:\n", ":b:\n")
    made = {path.name for path in (root / "jobs").rglob("*.py") if "Console(" in path.read_text()}
    assert made <= {"output.py", "evaluation.py"}, "other consoles of rich turn :b: into a picture"
