"""The demonstration, on its own films, which are there already: a library, a search, three right answers, evidence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kinodex.cli.demo import HOURS, SEED
from kinodex.index.library import Library
from kinodex.sketch.sample import sample
from tests.support.command import Kinodex


@pytest.mark.slow
def test_the_demonstration_runs_to_its_end(kinodex: Kinodex, tmp_path: Path) -> None:
    sample(tmp_path / "demo" / "films", HOURS, SEED)
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
