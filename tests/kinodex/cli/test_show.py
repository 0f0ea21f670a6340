"""Output: libraries and towers, times, counts, tables, JSON, and text that cannot steer a terminal."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from kinodex.cli.export.frames import show_frames
from kinodex.cli.library_tables import show_library
from kinodex.index.durations import counted, duration
from kinodex.index.library import Library
from kinodex.index.store.carried_towers import keep_towers
from kinodex.index.terminal_text import visible, visible_lines
from kinodex.jobs.errors import UsageError
from kinodex.jobs.towers.carried import tower_states
from kinodex.output import console, error_console, is_utf8, plain_table, print_every, print_json, write_any_text
from tests.support.command import Kinodex
from tests.support.libraries.agent_library import JPEG, make_library
from tests.support.libraries.made_towers import made_towers
from tests.support.libraries.random_library import SETTINGS, add_stage, fingerprint, made, spoken, write


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Library:
    films = {"one.mp4": ["a red kite"] * 5, "[b]two[/b].mp4": ["a blue boat"] * 5}
    return make_library(tmp_path_factory.mktemp("output") / "library", films)


def test_durations_and_counts_as_people_read_them() -> None:
    for seconds, shown in {2.5: "2.5 s", 40: "40 s", 720: "12 min", 12600: "3.5 h", 260_000: "3.0 days"}.items():
        assert duration(seconds) == shown
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


def test_json_has_times_and_paths_as_text_also_for_a_stream_of_another_encoding(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_json({"when": datetime(2026, 1, 2, tzinfo=UTC), "path": Path("a/b"), "title": "Übung"})
    printed = capsys.readouterr().out
    assert json.loads(printed) == {"when": "2026-01-02 00:00:00+00:00", "path": "a/b", "title": "Übung"}
    assert "Übung" in printed
    stream = io.TextIOWrapper(io.BytesIO(), "ascii", "backslashreplace")
    with redirect_stdout(stream):
        print_json({"text": "café \ud800"})
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    assert json.loads(stream.buffer.getvalue()) == {"text": "café \ud800"}


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
    console().print("Vitamin :b: :cat:", markup=False)
    error_console().print(":b:")
    assert capsys.readouterr() == ("Vitamin :b: :cat:\n", ":b:\n")
    made = {
        path.name
        for room in ("jobs", "kinodex/cli")
        for path in (root / room).rglob("*.py")
        if "Console(" in path.read_text()
    }
    assert made <= {"output.py", "evaluation.py"}, "other consoles of rich turn :b: into a picture"


TITLE = "two\nlines \x1b[31mred\r.mp4"
SHOWN = "two\\nlines \\x1b[31mred\\r.mp4"


def test_a_title_stays_in_its_line(kinodex, tmp_path):
    library = make_library(tmp_path / "library", {TITLE: ["a red kite"] * 3, "plain.mp4": ["a boat"] * 3}).uri
    told = kinodex("info", library)
    assert [line.split()[-1] for line in told.out.splitlines() if "8x8" in line] == ["none", "none"]
    assert len([line for line in told.out.splitlines() if SHOWN in line and "8x8" in line]) == 1
    assert "\x1b" not in told.out

    refused = kinodex("export", "frames", library, tmp_path, "--video", "nobody", "--at", 1)
    assert SHOWN.split("\\n")[1] in refused.error_line + refused.err.splitlines()[-1]
    assert "\x1b" not in refused.err

    assert TITLE in {row["title"] for row in json.loads(kinodex("info", library, "--json").out)["videos"]}


def test_only_what_is_unseen_is_spelled_out_and_line_breaks_that_are_meant_stay():
    assert visible("Größe 電影 👩‍🚀 a\u00a0b") == "Größe 電影 👩‍🚀 a\u00a0b"
    assert visible("a\u202eb\x07\udcff") == "a\\u202eb\\x07\\udcff"
    assert visible_lines("one\ntwo\tthree") == "one\ntwo\\tthree"


def test_streams_of_another_encoding_write_escapes(tmp_path):
    strict, foreign, other = (
        io.TextIOWrapper(io.BytesIO(), encoding, errors)
        for encoding, errors in (("utf-8", "strict"), ("ascii", "surrogateescape"), ("utf-8", "replace"))
    )
    write_any_text(strict, foreign, other)
    assert (strict.errors, foreign.errors, other.errors) == ("backslashreplace", "backslashreplace", "replace")
    assert [is_utf8(stream) for stream in (strict, foreign, io.StringIO())] == [True, False, True]
    foreign.write("café 😀")
    foreign.flush()
    assert foreign.buffer.getvalue() == rb"caf\xe9 \U0001f600"


SPACE = fingerprint()


@pytest.fixture
def library(tmp_path: Path) -> Library:
    """A library of no videos, of the space of `made_towers`."""
    return Library.open_or_create(str(tmp_path / "library"), SETTINGS, SPACE)


def states(library: Library) -> list[tuple[str, str]]:
    found = tower_states(library)
    assert {(each["space"], each["digest"]) for each in found} == {(SPACE.name, SPACE.digest)}
    return [(each["tower"], each["state"]) for each in found]


def test_towers_are_listed_where_something_is_known_of_them_and_damage_is_a_state(library, tmp_path):
    assert states(library) == [("text", "not carried")]
    keep_towers(library.uri, made_towers(tmp_path / "a", "text"))
    carried = "carried, 0.0 MB, least cosine 0.999950 of 3"
    assert states(library) == [("text", carried)]
    keep_towers(library.uri, made_towers(tmp_path / "b", image="too odd"))
    assert states(library) == [("text", carried), ("image", "not carried: too odd")]
    keep_towers(library.uri, made_towers(tmp_path / "c", "image"))
    assert states(library) == [("text", carried), ("image", carried)]
    (tmp_path / "library" / "towers" / SPACE.digest / "image.bin").unlink()
    ((tower, state),) = states(library)
    assert tower == "text" and "image.bin is missing" in state and "kinodex add text-tower" in state
    keep_towers(library.uri, made_towers(tmp_path / "d", "text"))
    other = fingerprint(weights="b" * 64)
    library.additions.add_space(other)
    by_digest = {(each["digest"], each["tower"]): each["state"] for each in tower_states(library)}
    assert by_digest[other.digest, "text"] == "not carried" and by_digest[SPACE.digest, "text"] == carried


def test_info_counts_the_lines_of_speech_and_names_a_language_once(kinodex: Kinodex, tmp_path: Path) -> None:
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    write(library, made("aaaa", 10, seed=1, lines=((0.0, 2.0, "hello"),)))
    add_stage(library, "speech", "whisper", {"aaaa": [spoken(n, f"line {n}", None, "eng") for n in range(4)]})
    printed = kinodex("info", library.uri).out
    assert "said and subtitled in en (5 lines)" in printed
    (row,) = [line.split() for line in printed.splitlines() if line.startswith("aaaa ")]
    assert row[6] == "5", "a subtitle and four lines of speech"
