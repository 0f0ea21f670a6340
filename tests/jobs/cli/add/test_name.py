"""`kinodex name` and `kinodex remove speaker`: voices listed, named, renamed and forgotten."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from kinodex.index.library import Library
from tests.support.command import bad, json_of
from tests.support.libraries.random_library import SETTINGS, fingerprint, made, write


@pytest.fixture
def library(tmp_path) -> Library:
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    write(library, made("aaaa", 4, seed=0))
    voices = [SimpleNamespace(vector=np.eye(256, dtype=np.float32)[number], seconds=9.0) for number in range(2)]
    library.speakers.match(voices, "m", 0.8)
    return library


def test_voices_are_listed_named_and_renamed(kinodex, library):
    assert "speaker-2    (no name)" in kinodex("name", library.uri).out
    ran = kinodex("name", library.uri, "speaker-1", "Anna")
    assert (ran.code, ran.out.split()[:2]) == (0, ["speaker-1", "Anna"])
    assert json_of(kinodex, "name", library.uri, "anna", "Anna Lee")[0]["name"] == "Anna Lee"
    assert [row["name"] for row in json_of(kinodex, "name", library.uri)] == ["Anna Lee", None]
    assert json_of(kinodex, "name", library.uri, "Anna Lee", "--remove") == [
        {"speaker": "speaker-1", "name": None, "seconds": 9.0, "model": "m"}
    ]


def test_what_makes_no_sense_is_refused(kinodex, library, tmp_path):
    bad(kinodex, "name", library.uri, "speaker-9", "Bo", code=2, says="got speaker 'speaker-9', whom")
    bad(kinodex, "name", library.uri, "speaker-1", code=2, says="got speaker 'speaker-1' with no name; give a name")
    bad(kinodex, "name", library.uri, "1", "Bo", "--remove", code=2, says="with a name and --remove")
    bad(kinodex, "name", library.uri, "--remove", code=2, says="got --remove and no speaker")
    bad(kinodex, "name", library.uri, "1", "speaker 2", code=2, says="is no number of a speaker")
    empty = Library.create(str(tmp_path / "empty"), SETTINGS, fingerprint())
    assert "no voices are known" in kinodex("name", empty.uri).out


def test_a_voice_is_forgotten(kinodex, library):
    kinodex("name", library.uri, "speaker-2", "Bo")
    bad(kinodex, "remove", "speaker", library.uri, "bo", code=2, says="give --yes")
    ran = kinodex("remove", "speaker", library.uri, "bo", "--yes")
    assert (ran.code, ran.out.splitlines()) == (0, ["speaker-2  Bo", "1 voice forgotten, 1 left"])
    assert [row.speaker for row in library.speakers.rows()] == ["speaker-1"]
    bad(kinodex, "remove", "speaker", library.uri, "bo", "--yes", code=2, says="it knows speaker-1")
