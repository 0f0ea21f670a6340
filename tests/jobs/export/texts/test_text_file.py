"""Texts are written whole, never over something by mistake, or to standard output; and names that any disk takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from kinodex.jobs.errors import UsageError
from kinodex.jobs.export.texts import distinct, file_stem, time_stem, write_text


def test_nothing_is_overwritten_unasked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.vtt"
    write_text(str(path), "one\r\n")
    assert path.read_bytes() == b"one\r\n"
    with pytest.raises(UsageError, match="which is there already; give another file, or --overwrite"):
        write_text(str(path), "two")
    write_text(str(path), "two", overwrite=True)
    assert path.read_text() == "two"
    for place, says in ((tmp_path, "which is a folder"), (tmp_path / "no" / "a.vtt", "cannot write")):
        with pytest.raises(UsageError, match=says):
            write_text(str(place), "three")
    assert [each.name for each in tmp_path.iterdir()] == ["a.vtt"]
    write_text("-", "four")
    assert capsys.readouterr().out == "four"


def test_names_are_safe_and_each_once() -> None:
    assert file_stem("../../etc/passwd") == "passwd"
    assert file_stem("Küste: Möwen & mehr?.mp4") == "Küste__Möwen___mehr_.mp4"
    assert file_stem("...") == "video"
    assert file_stem("-rf *") == "rf"
    assert len(file_stem("映" * 200).encode()) <= 80
    assert distinct(["a", "A", "b", "a"]) == ["a", "A_2", "b", "a_3"]
    assert time_stem(3723.4567) == "01h02m03.457s"
    assert time_stem(-1.0) == "00h00m00.000s"
    hours = [time_stem(3600.0 * each) for each in (1, 2, 9, 10, 11)]
    assert sorted(hours) == hours
