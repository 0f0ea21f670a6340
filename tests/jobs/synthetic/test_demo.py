"""The demonstration, on films that are there already: a library, a search, three questions, traces and evidence."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from index.library import Library
from tests.support.command import Kinodex


@pytest.mark.slow
def test_the_demonstration_runs_to_its_end(kinodex: Kinodex, films: Path, tmp_path: Path) -> None:
    shutil.copytree(films, tmp_path / "demo" / "films")
    ran = kinodex("demo", tmp_path / "demo")
    assert ran.code == 0, ran.err
    assert "the films are there already" in ran.out
    assert re.search(r"[0-3] of 3 right, in \d+ s", ran.out)
    assert ran.out.count("truth") == 3
    assert len(Library.open(str(tmp_path / "demo" / "library")).videos()) == 3
    assert sorted(path.name for path in (tmp_path / "demo").glob("trace_*")) == [
        "trace_1.jsonl",
        "trace_2.jsonl",
        "trace_3.jsonl",
    ]
    assert all(path.read_bytes()[:2] == b"\xff\xd8" for path in (tmp_path / "demo" / "evidence").iterdir())
