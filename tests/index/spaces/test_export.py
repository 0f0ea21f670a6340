"""Towers exported into the user's cache once for a machine, by one process, as long as the model's files stay."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

from kinodex.index.errors import ExportRefused
from kinodex.index.spaces.export import cached_image_tower, export_to_cache, read_cached, recall
from kinodex.index.spaces.export_image import PICTURES, export_image_tower
from kinodex.index.spaces.image_tower import IMAGE_ONNX, ImageTower
from kinodex.index.spaces.space import Space, load_space
from kinodex.index.spaces.text_tower import TextTower
from kinodex.index.spaces.tower_cache import cache_folder, cached_place
from kinodex.index.spaces.towers import SpaceTowers, write_towers
from kinodex.index.spaces.trial import TRIAL_JSON, read_trial
from tests.support.late import late
from tests.support.models.tiny_models import TINY, write_model

torch = late("torch")


@pytest.fixture(scope="module")
def name(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_model(tmp_path_factory.mktemp("model"), TINY)


@pytest.fixture(scope="module")
def exported(name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that holds both exported towers."""
    place = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(place))
        assert list(export_to_cache(name, ["image", "text"])) == ["image", "text"]
    return place


@pytest.fixture
def cache(exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that cache, for one test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Path(shutil.copytree(exported, tmp_path / "cache"))


def loaded(name: str) -> Space:
    return load_space(name, device="cpu", towers="image")


def pictures(count: int) -> np.ndarray:
    return np.random.default_rng(3).integers(0, 256, (count, 3, 64, 64), dtype=np.uint8)


def cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    a, b = a.astype(np.float64), b.astype(np.float64)
    scaled: np.ndarray = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    return scaled


@pytest.mark.slow
def test_exported_towers_give_the_vectors_of_torch_and_say_what_each_arithmetic_costs_here(name, cache):
    space = load_space(name, device="cpu")
    assert recall(name) == space.fingerprint
    tower, trial = cached_image_tower(space.fingerprint), read_trial(space.fingerprint.digest)
    assert tower is not None and trial is not None and trial.taken
    assert cosines(tower.embed(pictures(5)), space.embed(pictures(5))).min() > 0.99999
    assert {tower.arithmetic, space.arithmetic} <= trial.cpu_s_a_picture.keys()
    assert min(trial.cpu_s_a_picture.values()) > 0
    held = read_cached(space.fingerprint.digest, "image")
    assert held is not None and held.image is not None
    assert (held.image.samples, held.image.least_cosine > 0.99999) == (PICTURES, True)
    texts = TextTower.open(cached_place(space.fingerprint.digest, "text"))
    assert cosines(texts.embed_text(["a red boat"]), space.embed_text(["a red boat"])).min() > 0.9999


def test_a_trial_that_was_lost_counts_on_its_own_machine_alone(name, cache):
    space = recall(name)
    assert space is not None
    file = cached_place(space.digest, "image") / TRIAL_JSON
    trial = json.loads(file.read_text())
    for cpu, is_used in ((trial["cpu"], False), ("another", True)):
        file.write_text(json.dumps(trial | {"taken": False, "cpu": cpu}))
        assert (cached_image_tower(space) is not None) == is_used
    (cached_place(space.digest, "image") / IMAGE_ONNX).write_bytes(b"cut")
    assert (read_cached(space.digest, "image"), cached_image_tower(space)) == (None, None)


def test_a_name_is_another_space_once_a_file_of_its_model_changes(name, cache, tmp_path):
    assert recall(name.replace("model", "other")) is None
    model = Path(name.removeprefix("local-dir:"))
    moved = f"local-dir:{shutil.copytree(model, tmp_path / 'moved')}"
    first = recall(name)
    assert first is not None
    held = cached_place(first.digest, "text") / "tower.json"
    written = held.stat().st_mtime_ns
    assert list(export_to_cache(moved, ["text"])) == ["text"]
    found = recall(moved)
    assert found is not None and (found.digest, held.stat().st_mtime_ns) == (first.digest, written), "made once"
    write_model(tmp_path / "moved", TINY, seed=1)
    assert recall(moved) is None
    assert recall(name) == first


def test_one_process_exports_at_a_time(name, cache):
    (record,) = cache_folder("names").glob("*.lock")
    made: list[str] = []
    other = Thread(target=lambda: made.extend(export_to_cache(name, ["text"])))
    with record.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        other.start()
        other.join(0.2)
        assert made == []
    other.join()
    assert made == ["text"]
    os.utime(record)


def wayward() -> Any:
    """A tower with an operator that ONNX lacks."""

    class Wayward(torch.nn.Module):  # type: ignore[name-defined, misc]
        def forward(self, images):
            return torch.linalg.eigvals(images[:, 0, :8, :8] + 1).real

    return Wayward()


def altered() -> Any:
    """A tower of which the exporter makes another."""

    class Altered(torch.nn.Module):  # type: ignore[name-defined, misc]
        def forward(self, images):
            means = images.mean((2, 3))
            return means.flip(1) if torch.jit.is_tracing() else means

    return Altered()


@pytest.mark.parametrize(
    ("tower", "why"), [(wayward, "torch cannot export the image tower of .*: "), (altered, "has a cosine of only")]
)
def test_a_tower_is_refused_with_its_reason(name, tmp_path: Path, tower, why):
    space = loaded(name)
    space._model.visual = tower()
    with pytest.raises(ExportRefused, match=why) as error:
        export_image_tower(space, tmp_path)
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_a_graph_is_kept_in_half_precision_where_that_gives_the_same_vectors(name, tmp_path):
    space = loaded(name)
    facts = export_image_tower(space, tmp_path)
    write_towers(tmp_path, SpaceTowers(space.fingerprint, image=facts))
    assert cosines(ImageTower.open(tmp_path).embed(pictures(3)), space.embed(pictures(3))).min() > 0.99999
    parameters = sum(parameter.numel() for parameter in space.image_parts()[0].parameters())
    assert (facts.settings["weights"] == "float16") == (facts.bytes < 4 * parameters)
