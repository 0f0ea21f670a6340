"""The built-in space's image tower in numpy, as it is shipped, and towers that are none."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from kinodex.index.errors import TowersDamaged
from kinodex.index.spaces.cpu import ImageTower
from kinodex.index.spaces.resnet import IMAGE_ARRAYS, ResNetTower, has_resnet
from kinodex.index.spaces.space import load_space
from kinodex.index.spaces.towers import BUILTIN_TOWERS, TOWER_JSON, read_towers


@pytest.fixture(scope="module")
def tower() -> ResNetTower:
    return ResNetTower.open(BUILTIN_TOWERS)


@pytest.fixture(scope="module")
def batch(tower: ResNetTower) -> np.ndarray:
    rgbs = np.random.default_rng(3).integers(0, 256, (9, 90, 160, 3), dtype=np.uint8)
    return np.stack([tower.prepare(rgb) for rgb in rgbs])


def test_it_gives_the_vectors_of_the_torch_tower(tower, batch):
    space = load_space("builtin", device="cpu", towers="image")
    assert tower.fingerprint == space.fingerprint
    assert (tower.name, tower.dim, tower.device_type) == ("builtin", 256, "cpu")
    assert tower.arithmetic == f"float32, numpy {np.__version__}"
    ours = tower.embed(batch)
    assert (ours.shape, ours.dtype) == ((9, 256), np.float16)
    for other in (space, ImageTower.open(BUILTIN_TOWERS)):
        theirs = other.embed(batch).astype(np.float64)
        norms = np.linalg.norm(ours.astype(np.float64), axis=1) * np.linalg.norm(theirs, axis=1)
        assert ((ours * theirs).sum(1) / norms).min() > 0.9999
    assert tower.embed(batch[:0]).shape == (0, 256)


def test_a_batch_of_any_size_gives_the_same_vectors_in_any_number_of_threads(tower, batch):
    with tower.threads(1), ThreadPoolExecutor(4) as pool:
        alone = np.concatenate(list(pool.map(tower.embed, [each[None] for each in batch])))
    np.testing.assert_allclose(alone.astype(np.float32), tower.embed(batch).astype(np.float32), atol=5e-4)


def test_damaged_towers_are_named(tmp_path):
    held = read_towers(BUILTIN_TOWERS)
    assert held is not None and held.image is not None and has_resnet(held.image)
    damaged = shutil.copytree(BUILTIN_TOWERS, tmp_path / "damaged")
    content = (damaged / IMAGE_ARRAYS).read_bytes()
    (damaged / IMAGE_ARRAYS).write_bytes(content[:-1])
    with pytest.raises(TowersDamaged, match=r"image\.safetensors has 2,867,503 bytes"):
        ResNetTower.open(damaged)
    (damaged / IMAGE_ARRAYS).write_bytes(bytes(len(content)))
    with pytest.raises(TowersDamaged, match="cannot be read"):
        ResNetTower.open(damaged)
    described = json.loads((damaged / TOWER_JSON).read_text())
    del described["image"]["settings"]["resnet"]
    (damaged / TOWER_JSON).write_text(json.dumps(described))
    with pytest.raises(TowersDamaged, match="resnet"):
        ResNetTower.open(damaged)
