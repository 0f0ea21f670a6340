"""On a CPU a tower changes over to ONNX Runtime where that is quicker, at the first batch or in the middle of a run."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from kinodex.index.errors import StorageError
from kinodex.index.spaces.cpu import IMAGE_ONNX, CpuTower, ImageTower, TrialRule, compare, export_to_cache
from kinodex.index.spaces.load import load_image_tower
from kinodex.index.spaces.space import Space, load_space
from kinodex.index.spaces.towers import Fingerprint, SpaceTowers, cache_folder, read_towers, tower_facts, write_towers
from tests.support.models.tiny_models import TINY, write_model

TAKEN = TrialRule(min_parameters=0, min_speedup=0.0)
"""Takes a graph however quick it is: which one is quicker is no matter of these tests."""
TORCH, RUNTIME = f"float32, torch {torch.__version__}", f"float32, ONNX Runtime {version('onnxruntime')}"


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


@pytest.fixture
def no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "none"))
    return tmp_path / "none"


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


def test_an_exported_tower_that_is_quicker_is_taken_at_the_first_batch(name, cache):
    space = loaded(name)
    tower = CpuTower(loaded(name), TAKEN)
    assert (tower.fingerprint, tower.name, tower.dim) == (space.fingerprint, name, space.dim)
    assert (tower.arithmetic, tower.embed(pictures(0)).shape) == ("", (0, space.dim))
    rgb = np.random.default_rng(1).integers(0, 256, (90, 160, 3), dtype=np.uint8)
    before = tower.prepare(rgb)
    vectors = tower.embed(pictures(9))
    assert tower.arithmetic == RUNTIME
    assert cosines(vectors, space.embed(pictures(9))).min() > 0.99999
    np.testing.assert_array_equal(tower.prepare(rgb), before)


def test_one_that_is_not_quicker_is_left(name, cache):
    tower = CpuTower(loaded(name), TrialRule(min_parameters=0, min_speedup=1e9))
    np.testing.assert_array_equal(tower.embed(pictures(5)), loaded(name).embed(pictures(5)))
    assert tower.arithmetic == TORCH


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


def test_a_library_may_have_it(name, cache, no_cache, tmp_path):
    shutil.copytree(cache, tmp_path / "carried")
    tower = CpuTower(loaded(name), TAKEN)
    tower.offer(lambda: tmp_path / "carried")
    tower.embed(pictures(3))
    assert tower.arithmetic == RUNTIME


def test_what_cannot_be_read_is_said_and_torch_stays(name, cache):
    def out_of_reach() -> Path:
        raise StorageError("cannot use s3://films")

    (cache / IMAGE_ONNX).write_bytes(b"")
    tower = CpuTower(loaded(name), TAKEN)
    tower.offer(out_of_reach)
    tower.embed(pictures(3))
    used, cut_off, away = tower.arithmetic.split("; ")
    assert used == TORCH
    assert cut_off.startswith(f"an exported tower was left out: {cache / IMAGE_ONNX} has 0 bytes")
    assert away == "an exported tower was left out: cannot use s3://films"


def test_a_graph_of_other_vectors_is_refused(name, cache):
    """Its files are whole, and its weights are others."""
    graph = onnx.load(cache / IMAGE_ONNX)
    largest = max(graph.graph.initializer, key=lambda each: len(each.raw_data))
    numbers = onnx.numpy_helper.to_array(largest)
    largest.CopyFrom(onnx.numpy_helper.from_array(np.ascontiguousarray(numbers[::-1]), largest.name))
    onnx.save(graph, cache / IMAGE_ONNX)
    describe(cache)
    tower = CpuTower(loaded(name), TAKEN)
    np.testing.assert_array_equal(tower.embed(pictures(4)), loaded(name).embed(pictures(4)))
    assert tower.arithmetic.startswith(f"{TORCH}; ONNX Runtime was left out: a cosine of ")


def test_a_graph_of_another_space_is_none_of_this_one(name, cache):
    describe(cache, load_space("builtin", device="cpu", towers="image").fingerprint)
    tower = CpuTower(loaded(name), TAKEN)
    tower.embed(pictures(4))
    assert tower.arithmetic == TORCH


def test_a_graph_that_cannot_run_is_said(name, cache):
    (cache / IMAGE_ONNX).write_bytes(b"no graph")
    describe(cache)
    tower = CpuTower(loaded(name), TAKEN)
    tower.embed(pictures(4))
    assert tower.arithmetic.startswith(f"{TORCH}; ONNX Runtime was left out: cannot read {cache / IMAGE_ONNX}")


@pytest.mark.slow
def test_a_long_run_exports_the_tower_and_the_next_begins_with_it(name, no_cache, capfd):
    tower = CpuTower(loaded(name), TrialRule(min_parameters=0, min_speedup=0.0, export_after_s=0.0))
    first = tower.embed(pictures(5))
    assert tower.arithmetic == TORCH
    with tower.threads(1), ThreadPoolExecutor(3) as pool:
        vectors = [*pool.map(tower.embed, [pictures(5)] * 6)]
        tower.embed(pictures(5))
    assert tower.arithmetic == f"{TORCH}; {RUNTIME}"
    assert min(cosines(each, first).min() for each in vectors) > 0.99999
    assert capfd.readouterr() == ("", "")
    assert [each.name for each in no_cache.iterdir()] == ["kinodex"]  # and no package left anything of its own
    assert [each.name for each in cache_folder(tower.fingerprint.digest).iterdir() if each.is_dir()] == ["image"]
    following = CpuTower(loaded(name), TAKEN)
    following.embed(pictures(5))
    assert following.arithmetic == RUNTIME


@pytest.mark.slow
def test_an_export_that_fails_is_said_once_and_torch_stays(name, no_cache):
    no_cache.write_text("a file where the cache should be")
    tower = CpuTower(loaded(name), TrialRule(min_parameters=0, min_speedup=0.0, export_after_s=0.0))
    for _ in range(4):
        np.testing.assert_array_equal(tower.embed(pictures(3)), loaded(name).embed(pictures(3)))
    assert tower.arithmetic.startswith(f"{TORCH}; ")
    assert tower.arithmetic.count("not exported to ONNX Runtime: cannot keep a tower in ") == 1


def test_threads_are_the_processes_own_and_go_with_the_change(name, cache):
    tower = CpuTower(loaded(name), TAKEN)
    before = torch.get_num_threads()
    with tower.threads(before + 2):
        assert torch.get_num_threads() == before + 2
        tower.embed(pictures(3))
        assert tower.arithmetic == RUNTIME
        assert isinstance(tower._tower, ImageTower) and tower._tower._threads == before + 2
    with tower.threads(before + 1):
        assert tower._tower._threads == before + 1
        tower.embed(pictures(3))
    assert torch.get_num_threads() == before


def test_towers_are_compared_by_time_and_by_vectors(name, cache):
    space = loaded(name)
    speedup, cosine = compare(space, ImageTower(space.fingerprint, cache / IMAGE_ONNX, 1), pictures(4))
    assert speedup > 0
    assert 0.99999 < cosine < 1.00001
