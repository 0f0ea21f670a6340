"""The ResNet in numpy, part by part, against torch: sizes that the built-in space does not have."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from kinodex.index.errors import TowersDamaged
from kinodex.index.spaces.cpu import ImageTower
from kinodex.index.spaces.resnet import (
    IMAGE_ARRAYS,
    ResNetSettings,
    ResNetTower,
    has_resnet,
)
from kinodex.index.spaces.space import load_space
from kinodex.index.spaces.towers import BUILTIN_TOWERS, TOWER_JSON, read_towers


@pytest.mark.slow
def test_the_shipped_tower_gives_the_vectors_of_the_torch_tower_in_batches_of_any_size():
    shipped, space = ResNetTower.open(BUILTIN_TOWERS), load_space("builtin", device="cpu", towers="image")
    assert shipped.fingerprint == space.fingerprint
    assert (shipped.name, shipped.dim, shipped.device_type) == ("builtin", 256, "cpu")
    assert shipped.arithmetic == f"float32, numpy {np.__version__}"
    rgbs = np.random.default_rng(3).integers(0, 256, (9, 90, 160, 3), dtype=np.uint8)
    batch = np.stack([shipped.prepare(rgb) for rgb in rgbs])
    ours = shipped.embed(batch)
    assert (ours.shape, ours.dtype.name) == ((9, 256), "float16")
    for other in (space, ImageTower.open(BUILTIN_TOWERS)):
        theirs = other.embed(batch).astype(np.float64)
        norms = np.linalg.norm(ours.astype(np.float64), axis=1) * np.linalg.norm(theirs, axis=1)
        assert ((ours * theirs).sum(1) / norms).min() > 0.9999
    assert shipped.embed(batch[:0]).shape == (0, 256)
    with shipped.threads(1), ThreadPoolExecutor(4) as pool:
        alone = np.concatenate(list(pool.map(shipped.embed, [each[None] for each in batch])))
    np.testing.assert_allclose(alone.astype(np.float32), ours.astype(np.float32), atol=5e-4)


def test_damaged_towers_are_named(tmp_path):
    held = read_towers(BUILTIN_TOWERS)
    assert held is not None and held.image is not None and has_resnet(held.image)
    damaged = shutil.copytree(BUILTIN_TOWERS, tmp_path / "damaged")
    content = (damaged / IMAGE_ARRAYS).read_bytes()
    described = json.loads((damaged / TOWER_JSON).read_text())
    del described["image"]["settings"]["resnet"]
    for name, damage, says in (
        (IMAGE_ARRAYS, content[:-1], r"image\.safetensors has 2,867,503 bytes"),
        (IMAGE_ARRAYS, bytes(len(content)), "cannot be read"),
        (TOWER_JSON, json.dumps(described).encode(), "resnet"),
    ):
        (damaged / name).write_bytes(damage)
        with pytest.raises(TowersDamaged, match=says):
            ResNetTower.open(damaged)
    with pytest.raises(KeyError):
        ResNetSettings.from_json({"blocks": [1]})
