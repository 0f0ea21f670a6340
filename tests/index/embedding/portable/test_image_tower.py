"""The exported image tower of the built-in space, and pictures prepared as open_clip prepares them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from kinodex.index.errors import TowersDamaged
from kinodex.index.spaces.cpu import IMAGE_ONNX, ImageTower, PictureFit
from kinodex.index.spaces.space import Space, load_space
from kinodex.index.spaces.towers import BUILTIN_TOWERS, SpaceTowers, read_towers, write_towers
from tests.support.models.tiny_models import TINY, write_model

SHAPES = ((90, 160), (160, 90), (30, 31), (64, 64), (3, 200))
WIDE = TINY | {"vision_cfg": TINY["vision_cfg"] | {"image_size": [64, 96]}}


def pictures(count: int, height: int = 90, width: int = 160) -> np.ndarray:
    return np.random.default_rng(3).integers(0, 256, (count, height, width, 3), dtype=np.uint8)


@pytest.fixture(scope="module")
def tower() -> ImageTower:
    return ImageTower.open(BUILTIN_TOWERS)


@pytest.fixture(scope="module")
def space() -> Space:
    return load_space("builtin", device="cpu", towers="image")


def test_it_gives_the_vectors_of_the_torch_tower(tower, space):
    assert tower.fingerprint == space.fingerprint
    assert (tower.name, tower.dim, tower.device_type) == ("builtin", 256, "cpu")
    assert tower.arithmetic == f"float32, ONNX Runtime {version('onnxruntime')}"
    batch = np.stack([tower.prepare(rgb) for rgb in pictures(9)])
    np.testing.assert_array_equal(batch, np.stack([space.prepare(rgb) for rgb in pictures(9)]))
    ours, theirs = tower.embed(batch), space.embed(batch)
    assert (ours.shape, ours.dtype) == ((9, 256), np.float16)
    cosines = (ours.astype(np.float64) * theirs).sum(1) / np.linalg.norm(ours.astype(np.float64), axis=1)
    assert (cosines / np.linalg.norm(theirs.astype(np.float64), axis=1)).min() > 0.99999
    assert tower.embed(batch[:0]).shape == (0, 256)


def test_a_batch_of_any_size_gives_the_same_vectors_in_any_number_of_threads(tower):
    batch = np.stack([tower.prepare(rgb) for rgb in pictures(12)])
    with tower.threads(1), ThreadPoolExecutor(4) as pool:
        alone = list(pool.map(tower.embed, [each[None] for each in batch]))
    with tower.threads(2):
        together = tower.embed(batch)
    np.testing.assert_allclose(np.concatenate(alone).astype(np.float32), together.astype(np.float32), atol=3e-4)


@pytest.mark.parametrize("config", [TINY, WIDE], ids=["square", "wide"])
@pytest.mark.parametrize("mode", ["shortest", "longest", "squash"])
@pytest.mark.parametrize("interpolation", ["bicubic", "bilinear"])
def test_pictures_are_prepared_as_open_clip_does_it(tmp_path, config, mode, interpolation):
    settings = {"resize_mode": mode, "interpolation": interpolation, "fill_color": 9}
    space = load_space(write_model(tmp_path / "model", config, settings), towers="image")
    fit = PictureFit.of(space.fingerprint.preprocess)
    for shape in SHAPES:
        (rgb,) = pictures(1, *shape)
        np.testing.assert_array_equal(fit.prepare(rgb), space.prepare(rgb), err_msg=str(shape))


def test_settings_that_are_missing_are_open_clips():
    assert PictureFit.of(json.dumps({})) == PictureFit(224, 224, "shortest", False, 0)


def test_damaged_towers_are_named(tmp_path):
    with pytest.raises(TowersDamaged, match=f"{tmp_path} holds no image tower"):
        ImageTower.open(tmp_path)
    held = read_towers(BUILTIN_TOWERS)
    assert held is not None
    write_towers(tmp_path, SpaceTowers(held.space))
    with pytest.raises(TowersDamaged, match="holds no image tower"):
        ImageTower.open(tmp_path)
    damaged: Path = shutil.copytree(BUILTIN_TOWERS, tmp_path / "damaged")
    content = (damaged / IMAGE_ONNX).read_bytes()
    (damaged / IMAGE_ONNX).write_bytes(content[: len(content) // 2])
    with pytest.raises(TowersDamaged, match=r"image\.onnx"):
        ImageTower.open(damaged)
    (damaged / IMAGE_ONNX).write_bytes(bytes(len(content)))
    with pytest.raises(TowersDamaged, match=r"image\.onnx"):
        ImageTower.open(damaged)


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
