"""`kinodex duplicates`: a drawn film and a part of it cut out, as a table, as JSON and as CSV."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from kinodex.index.library import Library
from tests.support.command import Kinodex, bad
from tests.support.duplicates.walks import DIM, shot, walk
from tests.support.libraries.random_library import SETTINGS, MadeVideo, fingerprint, write

FILM, OTHER = walk(90, 1), walk(90, 2)


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of a film, a part of it from 0:25 on, and another film."""
    folder = tmp_path_factory.mktemp("duplicates") / "library"
    library = Library.create(str(folder), SETTINGS, fingerprint(dim=DIM))
    parts = {"whole": shot(FILM, 0, 90), "cut": shot(FILM, 25, 65, noise=0.05), "other": shot(OTHER, 0, 60)}
    for name, units in parts.items():
        write(library, MadeVideo(name, units.astype("float16")), name)
    return folder


def test_a_table_has_the_pair_with_its_offset(kinodex: Kinodex, cut: Path) -> None:
    said = kinodex("duplicates", cut).out
    (row,) = [line for line in said.splitlines() if "whole" in line]
    assert row.split()[:2] == ["cut", "whole"]
    assert "+0:2" in row
    assert "other" not in said


def test_json_and_csv_have_the_same(kinodex: Kinodex, cut: Path) -> None:
    (pair,) = json.loads(kinodex("duplicates", cut, "--json", "--video", "whole").out)
    assert (pair["a"]["title"], pair["b"]["title"], pair["speed"]) == ("cut", "whole", 1.0)
    (row,) = csv.DictReader(io.StringIO(kinodex("duplicates", cut, "--csv").out))
    assert float(row["offset_s"]) == pytest.approx(pair["offset_s"], abs=0.001)
    assert float(row["start_b_s"]) == pytest.approx(pair["ranges"][0]["start_b_s"], abs=0.001)


def test_none_and_wrong_options_are_said(kinodex: Kinodex, cut: Path) -> None:
    assert "no two videos show the same" in kinodex("duplicates", cut, "--video", "other").out
    assert json.loads(kinodex("duplicates", cut, "--min-seconds", 60, "--json").out) == []
    bad(kinodex, "duplicates", cut, "--json", "--csv", code=2, says="give one of them")
    bad(kinodex, "duplicates", cut, "--every", 0, code=2, says="give more than 0")
    bad(kinodex, "duplicates", cut, "--space", "nowhere", code=4, says="got space nowhere")
