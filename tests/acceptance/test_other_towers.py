"""Towers of another library as a space: a library is made in them, offline, and what is no such folder is refused."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import kinodex as package
from tests.support.command import Kinodex, bad
from tests.world.drawn_space import FOLDER

WHAT, TOWER_JSON = "a red boat at sea", "tower.json"


@pytest.fixture(scope="module")
def theirs(short_films: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library in `photo` that carries both towers."""
    place = tmp_path_factory.mktemp("theirs") / "library"
    film = str(short_films / "film-01.mp4")
    assert package.ingest(film, library=place, space="photo", image_tower=True).count("indexed") == 1
    return place


@pytest.fixture
def towers(theirs: Path, tmp_path: Path) -> Path:
    """A copy of the folder with these towers."""
    (folder,) = (theirs / "towers").iterdir()
    return Path(shutil.copytree(folder, tmp_path / "towers"))


def test_a_library_is_made_in_them_and_lives_on_without_their_folder(
    theirs: Path, towers: Path, short_films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    film, mine = str(short_films / "film-01.mp4"), tmp_path / "mine"
    package.ingest(film, library=mine, space="towers:towers", image_tower=True)
    library, other = package.open(mine), package.open(theirs)
    assert library.info().space == f"towers:{towers}", "a path is kept whole"
    assert library.info().space_digest == other.info().space_digest
    assert np.array_equal(library.vectors("film-01").vectors, other.vectors("film-01").vectors)
    found = library.search(WHAT, in_="frames")
    assert [hit.time_s for hit in found] == [hit.time_s for hit in other.search(WHAT, in_="frames")]
    shutil.rmtree(towers)
    assert package.open(mine).search(WHAT, in_="frames") == found
    assert package.ingest(str(short_films / "film-02.mp4"), library=mine).count("indexed") == 1


def test_their_vectors_stand_beside_those_of_another_space(
    towers: Path, short_films: Path, tmp_path: Path, kinodex: Kinodex
) -> None:
    mine = tmp_path / "mine"
    ran = kinodex("ingest", short_films / "film-01.mp4", "--library", mine, "--space", f"towers:{FOLDER}")
    assert (ran.code, ran.err) == (0, ""), "their text tower is only copied"
    assert kinodex("add", "vectors", mine, "--space", f"towers:{towers}").code == 0
    assert kinodex("search", mine, WHAT, "--space", f"towers:{towers}").code == 0
    assert kinodex("use-space", mine, f"towers:{towers}").code == 0
    assert kinodex("ingest", short_films / "film-02.mp4", "--library", mine).code == 0
    assert package.open(mine).info().space == f"towers:{towers}"


def test_a_folder_without_these_towers_is_refused_in_one_line(
    towers: Path, short_films: Path, tmp_path: Path, kinodex: Kinodex
) -> None:
    known = json.loads((towers / TOWER_JSON).read_text())
    folders = {name: tmp_path / name for name in ("empty", "damaged", "text", "cut", "pipe", "held")}
    for folder in folders.values():
        folder.mkdir()
    (folders["damaged"] / TOWER_JSON).write_text("{")
    (folders["text"] / TOWER_JSON).write_text(json.dumps(known | {"image": None}))
    shutil.copytree(towers, folders["cut"], dirs_exist_ok=True)
    (folders["cut"] / "image.onnx").write_bytes(b"cut")
    os.mkfifo(folders["pipe"] / TOWER_JSON)
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (folders["held"] / TOWER_JSON).symlink_to(folders["held"] / TOWER_JSON)
    for name, says in (
        ("nothing", "there is no such folder; those that a library carries lie in LIBRARY/towers/DIGEST"),
        ("fifo", "there is no such folder"),
        ("loop", "there is no such folder"),
        ("n" * 5000, "there is no such folder"),
        ("empty", "holds no tower.json"),
        ("damaged", "is no description of towers"),
        ("text", "holds no image tower; a library carries one after `kinodex add text-tower LIBRARY --with-image"),
        ("cut", "image.onnx has 3 bytes"),
        ("pipe", "nobody writes into this pipe"),
        ("held", "cannot read"),
    ):
        space = f"towers:{tmp_path / name}"
        bad(kinodex, "ingest", short_films, "--library", tmp_path / "new", "--space", space, code=2, says=says)
    with pytest.raises(package.KinodexError, match="there is no such folder"):
        package.ingest(str(short_films), library=tmp_path / "new", space=f"towers:{tmp_path}/a\0b")
    bad(
        *(kinodex, "ingest", short_films, "--library", tmp_path / "new", "--space", f"towers:{towers}"),
        *("--device", "cuda"),
        code=2,
        says="is computed on the CPU; use auto or cpu",
    )
    assert not (tmp_path / "new").exists()
