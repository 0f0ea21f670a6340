"""Towers of its spaces that a library carries: exported by the way or on demand, and used before torch is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kinodex.index.errors import ExportRefused, ModelNotNamed, SpaceMismatch, UnknownModel
from kinodex.index.library import Library
from kinodex.index.spaces.embedders import TextEmbedder
from kinodex.index.spaces.export_image import export_image_tower
from kinodex.index.spaces.image_tower import ImageTower
from kinodex.index.spaces.load import load_text_tower
from kinodex.index.spaces.space import Space, load_space
from kinodex.index.spaces.text_tower import TextTower
from kinodex.index.spaces.towers import SHIPPED, SpaceTowers, write_towers
from kinodex.index.store.carried_towers import LEASE, held_towers, keep_towers
from kinodex.jobs.towers import export_process
from kinodex.jobs.towers.carried import carry_or_note, carry_towers
from kinodex.jobs.towers.embedder import load_embedder
from tests.support.command import Kinodex, bad, json_of
from tests.support.libraries.random_library import SETTINGS
from tests.support.models.stage_models import tiny_film
from tests.support.models.tiny_models import TINY, write_model
from tests.world.drawn_space import DRAWN, FOLDER

pytestmark = pytest.mark.slow

TEXTS = ["a red boat on the sea", "ein blaues Auto", "", "東京の夜"]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the exported towers of this module: the first test that needs one exports it."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def own_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))


@pytest.fixture(scope="module")
def model(tiny_model: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of a tiny CLIP, which tests may take away."""
    return Path(shutil.copytree(tiny_model("space"), tmp_path_factory.mktemp("models") / "tiny"))


@pytest.fixture(scope="module")
def torch_space(model: Path) -> Space:
    return load_space(f"local-dir:{model}")


@pytest.fixture
def library(torch_space: Space, tmp_path: Path) -> Library:
    return Library.create(str(tmp_path / "library"), SETTINGS, torch_space.fingerprint)


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_film(tmp_path_factory.mktemp("films") / "boat.mp4", 3, 0)


def assert_agree(tower: TextEmbedder, space: Space) -> None:
    cosines = (tower.embed_text(TEXTS) * space.embed_text(TEXTS)).sum(axis=1)
    assert cosines.min() > 0.9999
    np.testing.assert_allclose(np.linalg.norm(tower.embed_text(TEXTS), axis=1), 1, atol=1e-5)


def test_a_tower_is_exported_once_and_used_without_the_model(library, torch_space, model):
    assert isinstance(library.load_space(None, "text"), Space)
    carried = carry_towers(library, library.fingerprint, ["text"])
    assert (carried.exported, carried.refused) == (("text",), ())
    assert carried.towers.text is not None
    assert carried.towers.text.least_cosine >= 0.9999
    assert carry_towers(library, library.fingerprint, ["text"]).exported == ()
    assert carry_or_note(library, library.fingerprint, ["text"]) == []
    away = model.rename(model.with_name("away"))
    try:
        tower = Library.open(library.uri).load_space(None, "text")
        assert isinstance(tower, TextTower)
        assert tower.fingerprint == torch_space.fingerprint
        assert_agree(tower, torch_space)
    finally:
        away.rename(model)


def test_it_is_exported_again_on_demand(library, kinodex):
    carry_towers(library, library.fingerprint, ["text"])
    folder = Path(library.uri) / "towers" / library.fingerprint.digest
    weights = max(folder.iterdir(), key=lambda file: file.stat().st_size)
    weights.write_bytes(b"cut")
    bad(kinodex, "search", library.uri, "boat", "--in", "frames", code=2, says="add text-tower")
    assert "bytes, and" in kinodex("info", library.uri).out
    made = json_of(kinodex, "add", "text-tower", library.uri, "--again")
    assert made["exported"] == ["text"]
    assert kinodex("search", library.uri, "boat", "--in", "frames").code == 0
    assert "exported" not in kinodex("add", "text-tower", library.uri).out


def test_what_is_not_exported_by_the_way_is_said(tmp_path):
    """Another process is at it, or the name stands for other weights by now."""
    name = write_model(tmp_path / "model", TINY, seed=1)
    library = Library.create(str(tmp_path / "library"), SETTINGS, load_space(name, towers="text").fingerprint)
    with library.lease(LEASE, "another"):
        (line,) = carry_or_note(Library.open(library.uri), library.fingerprint, ["text"])
    assert "another on " in line
    write_model(tmp_path / "model", TINY, seed=2)
    with pytest.raises(SpaceMismatch, match="stands for other weights"):
        carry_towers(library, library.fingerprint, ["text"])
    (line,) = carry_or_note(library, library.fingerprint, ["text"])
    assert line.startswith(f"note: the text tower of {name} was not exported: here ")
    assert line.endswith(f"; `kinodex add text-tower {library.uri}` tries again")
    assert held_towers(library.uri, library.fingerprint.digest) is None


def test_an_ingest_or_a_further_space_exports_the_tower_and_says_so_or_leaves_it_out(
    kinodex, model, film, torch_space, tmp_path
):
    uri, space = tmp_path / "library", f"local-dir:{model}"
    assert kinodex("ingest", film, "--library", uri, "--space", space, "--no-text-tower").err == ""
    assert "text tower: not carried" in kinodex("info", uri).out
    assert not (uri / "towers").exists()
    ran = kinodex("ingest", film, "--library", uri)
    assert ran.code == 0
    (line,) = ran.err.splitlines()
    assert line.startswith(f"text tower of {space}: carried, ")
    assert ", exported in " in line
    assert kinodex("ingest", film, "--library", uri).err == ""
    assert "tower" not in kinodex("info", uri).out, "what is in order needs no line"
    (tower,) = json_of(kinodex, "info", uri)["towers"]
    assert (tower["space"], tower["tower"]) == (space, "text")
    assert kinodex("search", uri, "a red boat").code == 0
    other = tmp_path / "other"
    assert kinodex("ingest", film, "--library", other, "--space", DRAWN).err == ""
    ran = kinodex("add", "vectors", other, "--space", space)
    assert (ran.code, f"text tower of {space}: carried, " in ran.err) == (0, True)
    assert_agree(Library.open(str(other)).load_space(space, "text"), torch_space)


def test_a_folder_that_holds_no_model_is_said_before_a_child_is_started(
    kinodex: Kinodex, film: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    for name, says in (("nowhere", "there is no such folder"), ("empty", "holds no open_clip_config.json")):
        ran = kinodex("ingest", film, "--library", tmp_path / "library", "--space", f"local-dir:{tmp_path / name}")
        assert ran.code != 0 and says in ran.error_line
        assert "exporting" not in ran.err


def test_a_folder_of_towers_is_opened_if_the_user_named_it_and_holds_the_librarys_space(tmp_path):
    own = shutil.copytree(FOLDER, tmp_path / "own")
    named = Library.create(str(tmp_path / "library"), SETTINGS, load_text_tower(f"towers:{own}").fingerprint)
    assert isinstance(named.load_space(None, "text"), TextTower)
    assert carry_or_note(named, named.fingerprint, ["text"]) == []
    moved = replace(named.fingerprint, name=f"towers:{own.rename(tmp_path / 'never named')}")
    stranger = Library.create(str(tmp_path / "strangers"), SETTINGS, moved)
    for towers in ("text", "image"):
        with pytest.raises(ModelNotNamed, match="was never named here"):
            stranger.load_space(None, towers)
    with pytest.raises(ModelNotNamed, match="was never named here"):
        carry_towers(stranger, moved, ["text"])
    shutil.copytree(SHIPPED["photo"], own)
    with pytest.raises(SpaceMismatch, match="stands for other weights"):
        named.load_space(None, "image")
    with pytest.raises(SpaceMismatch, match="stands for other weights"):
        carry_towers(named, named.fingerprint, ["image"])
    with pytest.raises(UnknownModel, match="is exported towers and no model of open_clip"):
        named.load_space()


@pytest.mark.parametrize(
    ("says", "error"),
    [
        ("print('UnknownModel: no such tag')", pytest.raises(UnknownModel, match=r"^no such tag$")),
        ("print('KeyError: 3')", pytest.raises(ExportRefused, match=r"^3$")),
        ("raise SystemExit(7)", pytest.raises(ExportRefused, match="ended with status 7")),
    ],
)
def test_what_a_child_says_is_the_error(says: str, error: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-Sc", says], stdin=pipe, stdout=pipe, text=True) as child, error:
        monkeypatch.setitem(export_process._children, "a space", (child, "text"))
        export_process.export_in_child("a space", ["text"], "text")


def test_an_ingest_on_a_cpu_takes_the_image_tower_that_its_library_carries(library, model):
    assert isinstance(load_embedder(f"local-dir:{model}", "cpu", library), Space), "a small model is torch's"
    assert carry_towers(library, library.fingerprint, ["image"]).exported == ("image",)
    assert isinstance(load_embedder(f"local-dir:{model}", "cpu", library), ImageTower)


def test_a_carried_tower_embeds_for_an_ingest_if_it_makes_the_stored_vectors(
    kinodex: Kinodex, film: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine that exported none: the tower of another model, said to be this space's, embeds nothing."""
    name, uri = f"local-dir:{model}", str(tmp_path / "library")
    assert kinodex("ingest", film, "--library", uri, "--space", name).code == 0
    carry_towers(Library.open(uri), Library.open(uri).fingerprint, ["image"])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "of another machine"))
    assert isinstance(load_embedder(name, "cpu", Library.open(uri)), ImageTower)
    other = load_space(write_model(tmp_path / "other", TINY, seed=5))
    facts = export_image_tower(other, tmp_path / "other")
    write_towers(tmp_path / "other", SpaceTowers(Library.open(uri).fingerprint, image=facts))
    keep_towers(uri, tmp_path / "other")
    assert isinstance(load_embedder(name, "cpu", Library.open(uri)), Space)


LARGER = TINY | {"text_cfg": TINY["text_cfg"] | {"width": 256, "heads": 4}}
"""Large enough to be exported by a child: 65 MB, most of them in the table of words."""


def test_the_first_ingest_exports_both_towers_in_a_child_and_the_next_imports_no_torch(kinodex, film, tmp_path):
    """Run as a user does, in processes of their own; a library's files are the cache's, under another name."""
    name = write_model(tmp_path / "model", LARGER)
    said, imported = [], []
    for library in ("first", "next"):
        code = f"""
import sys
from kinodex.cli.main import main
sys.argv = ["kinodex", "ingest", {str(film)!r}, "--library", {str(tmp_path / library)!r}, "--space", {name!r}]
try:
    main()
finally:
    print(sorted({{"torch", "open_clip", "transformers", "onnx"}} & set(sys.modules)))
"""
        environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
        said.append(ran.stderr)
        imported.append(ran.stdout.splitlines()[-1])
    assert imported == ["[]", "[]"]
    assert f"exporting the towers of {name} for this machine, once" in said[0]
    assert ["exporting" in each for each in said] == [True, False]
    first, second = (next((tmp_path / each / "towers").glob("*/text.safetensors")) for each in ("first", "next"))
    assert first.stat().st_ino == second.stat().st_ino
    assert "tower" not in kinodex("info", tmp_path / "next").out, "none is missing"
