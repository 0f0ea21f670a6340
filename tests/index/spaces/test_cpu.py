"""On a CPU a tower changes over to ONNX Runtime where that is quicker, at the first batch or in the middle of a run."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from kinodex.index.errors import ExportRefused, SpaceMismatch
from kinodex.index.spaces.cpu import (
    IMAGE_ONNX,
    PICTURES,
    CpuTower,
    ExportBusy,
    ImageTower,
    TrialRule,
    compare,
    export_image_tower,
    export_in_child,
    export_to_cache,
)
from kinodex.index.spaces.load import load_image_tower
from kinodex.index.spaces.space import Space, load_space
from kinodex.index.spaces.towers import (
    BUILTIN_TOWERS,
    Fingerprint,
    SpaceTowers,
    cached_place,
    read_towers,
    tower_facts,
    write_towers,
)
from tests.support.late import late
from tests.support.models.tiny_models import TINY, write_model

onnx, torch = late("onnx"), late("torch")
TAKEN = TrialRule(min_parameters=0, min_speedup=0.0)
"""Takes a graph however quick it is: which one is quicker is no matter of these tests."""
TORCH, RUNTIME = f"float32, torch {version('torch')}", f"float32, ONNX Runtime {version('onnxruntime')}"


@pytest.fixture(scope="module")
def name(tmp_path_factory) -> str:
    return write_model(tmp_path_factory.mktemp("model"), TINY)


@pytest.fixture(scope="module")
def exported(name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that holds the exported tower."""
    place = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(place))
        export_to_cache(name, loaded(name).fingerprint.digest)
    return place


@pytest.fixture
def cache(exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the exported tower in a cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shutil.copytree(exported, tmp_path / "cache")
    (digest,) = (tmp_path / "cache" / "kinodex" / "towers").iterdir()
    return digest / "image"


def loaded(name: str) -> Space:
    return load_space(name, device="cpu", towers="image")


def pictures(count: int, seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, 3, 64, 64), dtype=np.uint8)


def describe(folder: Path, space: Fingerprint | None = None) -> None:
    """Describe the files of a tower's folder as they are now, as if an exporter had written them."""
    held = read_towers(folder)
    assert held is not None
    write_towers(folder, SpaceTowers(space or held.space, image=tower_facts(folder, [IMAGE_ONNX], {}, 64, 1.0)))


def cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    a, b = a.astype(np.float64), b.astype(np.float64)
    scaled: np.ndarray = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    return scaled


def test_an_exported_tower_that_is_quicker_is_taken_at_the_first_batch_with_the_threads_of_the_process(name, cache):
    space = loaded(name)
    tower = CpuTower(loaded(name), TAKEN)
    assert (tower.fingerprint, tower.name, tower.dim) == (space.fingerprint, name, space.dim)
    assert (tower.arithmetic, tower.embed(pictures(0)).shape) == ("", (0, space.dim))
    rgb = np.random.default_rng(1).integers(0, 256, (90, 160, 3), dtype=np.uint8)
    prepared, before = tower.prepare(rgb), torch.get_num_threads()
    with tower.threads(before + 2):
        assert torch.get_num_threads() == before + 2
        vectors = tower.embed(pictures(9))
        assert tower.arithmetic == RUNTIME
        assert isinstance(tower._tower, ImageTower) and tower._tower._threads == before + 2
    with tower.threads(before + 1):
        assert tower._tower._threads == before + 1
        tower.embed(pictures(3))
    assert torch.get_num_threads() == before
    assert cosines(vectors, space.embed(pictures(9))).min() > 0.99999
    np.testing.assert_array_equal(tower.prepare(rgb), prepared)
    speedup, cosine = compare(space, ImageTower(space.fingerprint, cache / IMAGE_ONNX, 1), pictures(4))
    assert speedup > 0 and 0.99999 < cosine < 1.00001


def test_towers_that_are_small_or_in_bf16_are_not_tried(name, cache):
    """The built-in space and all small ones so have the same vectors on every machine with torch."""
    looks: list[str] = []
    small = load_image_tower(name, "cpu")
    assert isinstance(small, CpuTower)
    small.offer(lambda: looks.append("small"))
    small.embed(pictures(2))
    space = loaded(name)
    space._model.visual.to(torch.bfloat16)
    half = CpuTower(space, TAKEN)
    half.offer(lambda: looks.append("bf16"))
    half.embed(pictures(2))
    assert (small.arithmetic, half.arithmetic) == (TORCH, f"bfloat16, torch {torch.__version__}")
    assert looks == []


def test_graphs_that_are_anothers_or_cannot_run_are_left_and_a_librarys_is_taken(name, cache, tmp_path, monkeypatch):
    whole = shutil.copytree(cache, tmp_path / "carried")
    slower = CpuTower(loaded(name), TrialRule(min_parameters=0, min_speedup=1e9))
    np.testing.assert_array_equal(slower.embed(pictures(5)), loaded(name).embed(pictures(5)))
    assert slower.arithmetic == TORCH
    describe(cache, load_space("builtin", device="cpu", towers="image").fingerprint)
    tower = CpuTower(loaded(name), TAKEN)
    tower.embed(pictures(4))
    assert tower.arithmetic == TORCH, "of another space"
    (cache / IMAGE_ONNX).write_bytes(b"no graph")
    describe(cache, tower.fingerprint)
    tower = CpuTower(loaded(name), TAKEN)
    tower.embed(pictures(4))
    assert tower.arithmetic.startswith(f"{TORCH}; ONNX Runtime was left out: cannot read {cache / IMAGE_ONNX}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "none"))
    tower = CpuTower(loaded(name), TAKEN)
    tower.offer(lambda: whole)
    tower.embed(pictures(3))
    assert tower.arithmetic == RUNTIME


@pytest.mark.slow
def test_a_tower_is_exported_once_by_one_process_and_only_of_its_own_checkpoint(name, cache):
    digest = loaded(name).fingerprint.digest
    written = (cache / "tower.json").stat().st_mtime_ns
    assert export_to_cache(name, digest) == cache == cached_place(digest, "image")
    assert (cache / "tower.json").stat().st_mtime_ns == written
    other = cached_place("0" * 12, "image")
    with pytest.raises(SpaceMismatch, match="stands for other weights"):
        export_to_cache(name, "0" * 12)
    problem = export_in_child(name, "0" * 12)
    assert problem is not None and problem.startswith(f"here {name} stands for other weights: ")
    assert not other.exists()
    other.parent.mkdir(parents=True, exist_ok=True)
    with (other.parent / ".image.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for export in (export_to_cache, export_in_child):
            with pytest.raises(ExportBusy):
                export(name, "0" * 12)


# The exported image tower of the built-in space, and pictures prepared as open_clip prepares them.


def rgb_pictures(count: int, height: int = 90, width: int = 160) -> np.ndarray:
    return np.random.default_rng(3).integers(0, 256, (count, height, width, 3), dtype=np.uint8)


@pytest.fixture(scope="module")
def tower() -> ImageTower:
    return ImageTower.open(BUILTIN_TOWERS)


@pytest.fixture(scope="module")
def space() -> Space:
    return load_space("builtin", device="cpu", towers="image")


def test_it_gives_the_vectors_of_the_torch_tower_in_batches_of_any_size_and_any_number_of_threads(tower, space):
    assert tower.fingerprint == space.fingerprint
    assert (tower.name, tower.dim, tower.device_type, tower.arithmetic) == ("builtin", 256, "cpu", RUNTIME)
    batch = np.stack([tower.prepare(rgb) for rgb in rgb_pictures(9)])
    np.testing.assert_array_equal(batch, np.stack([space.prepare(rgb) for rgb in rgb_pictures(9)]))
    with tower.threads(2):
        ours = tower.embed(batch)
    assert (ours.shape, ours.dtype, tower.embed(batch[:0]).shape) == ((9, 256), np.float16, (0, 256))
    assert cosines(ours, space.embed(batch)).min() > 0.99999
    with tower.threads(1), ThreadPoolExecutor(4) as pool:
        alone = np.concatenate(list(pool.map(tower.embed, [each[None] for each in batch])))
    np.testing.assert_allclose(alone.astype(np.float32), ours.astype(np.float32), atol=3e-4)
    onnx.checker.check_model(onnx.load(BUILTIN_TOWERS / IMAGE_ONNX), full_check=True)


@pytest.mark.slow
@pytest.mark.parametrize(("value", "at_import"), [(None, "1"), ("0", "0")])
def test_onnx_runtime_is_imported_without_telemetry_unless_the_user_says_otherwise(tmp_path, value, at_import):
    """Left alone, Microsoft's package writes an id of the machine into the user's cache, to send it with its events.

    It does so by its own rules, and never on a machine that it takes for one of CI. So this looks at the variable at
    the moment of the import.
    """
    code = """
import os, sys

at_import = []
def note(event, arguments):
    if event == "import" and arguments[0].startswith("onnxruntime"):
        at_import.append(os.environ.get("ORT_DISABLE_TELEMETRY"))
sys.addaudithook(note)

from kinodex.index.spaces.cpu import ImageTower
from kinodex.index.spaces.towers import BUILTIN_TOWERS
ImageTower.open(BUILTIN_TOWERS)
print({*at_import}, os.environ.get("ORT_DISABLE_TELEMETRY"))
"""
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    environment.pop("ORT_DISABLE_TELEMETRY", None)
    if value is not None:
        environment["ORT_DISABLE_TELEMETRY"] = value
    command = [sys.executable, "-c", code]
    said = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.strip()
    assert said == f"{{'{at_import}'}} {value}"
    if value is None:
        assert [*tmp_path.iterdir()] == []


# Exporting image towers of real open_clip models with random weights.


@pytest.mark.slow
def test_an_exported_tower_gives_the_vectors_of_torch(name, tmp_path, capfd):
    space = loaded(name)
    facts = export_image_tower(space, tmp_path)
    assert capfd.readouterr() == ("", "")
    assert (facts.samples, set(facts.files)) == (PICTURES, {IMAGE_ONNX})
    assert facts.least_cosine > 0.99999
    write_towers(tmp_path, SpaceTowers(space.fingerprint, image=facts))
    ours = ImageTower.open(tmp_path).embed(pictures(5)).astype(np.float32)
    np.testing.assert_allclose(ours, space.embed(pictures(5)), atol=1e-3)
    parameters = sum(parameter.numel() for parameter in space.image_parts()[0].parameters())
    assert (facts.settings["weights"] == "float16") == (facts.bytes < 4 * parameters)


def wayward():
    """A tower that `torch.export` cannot follow: its way depends on the pixels."""

    class Wayward(torch.nn.Module):  # type: ignore[name-defined, misc]
        def forward(self, images):
            return images.mean((2, 3)) if images.sum().item() > 0 else images.amax((2, 3))

    return Wayward()


def altered():
    """A tower of which the exporter makes another."""

    class Altered(torch.nn.Module):  # type: ignore[name-defined, misc]
        def forward(self, images):
            means = images.mean((2, 3))
            return means.flip(1) if torch.compiler.is_exporting() else means

    return Altered()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tower", "why"),
    [
        (wayward, "torch cannot export the image tower of .*: GuardOnDataDependent"),
        (altered, "has a cosine of only"),
    ],
)
def test_a_tower_is_refused_with_its_reason(name, tmp_path: Path, tower, why, capfd):
    space = load_space(name, device="cpu", towers="image")
    space._model.visual = tower()
    with pytest.raises(ExportRefused, match=why) as error:
        export_image_tower(space, tmp_path)
    assert "\n" not in str(error.value)
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []
