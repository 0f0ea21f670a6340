"""Cores, memory and free space of the machine that runs the tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from kinodex.doctor.machine import check_machine
from tests.support.runs.check_results import by_name


def test_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KINODEX_CACHE", str(tmp_path / "not" / "made" / "yet"))
    found = by_name(check_machine())
    assert found["kinodex"].said.count("Python 3.") == 1
    assert " usable" in found["cores"].said
    assert found["memory"].said.count(" GB") >= 2
    assert found["room for replies"].said.endswith(f" GB free at {tmp_path / 'not' / 'made' / 'yet'}")


def test_a_folder_without_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KINODEX_CACHE", "/proc/kinodex")
    found = by_name(check_machine())["room for replies"]
    assert found.said == "0.0 GB free at /proc/kinodex"
    assert (found.state, found.todo) == ("broken", "free some; set KINODEX_CACHE to a folder with room")
