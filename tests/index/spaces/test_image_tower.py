"""The exported image towers of the drawn space, and pictures prepared as open_clip prepares them."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version

import numpy as np
import pytest

from kinodex.index.spaces.image_tower import IMAGE_ONNX, ImageTower
from kinodex.index.spaces.space import Space, load_space
from tests.index.spaces.test_export import cosines
from tests.support.late import late
from tests.world.drawn_space import DRAWN_BY_TORCH, FOLDER

onnx = late("onnx")
RUNTIME = f"float32, ONNX Runtime {version('onnxruntime')}"


def rgb_pictures(count: int, height: int = 90, width: int = 160) -> np.ndarray:
    return np.random.default_rng(3).integers(0, 256, (count, height, width, 3), dtype=np.uint8)


@pytest.fixture(scope="module")
def space() -> Space:
    return load_space(DRAWN_BY_TORCH, device="cpu", towers="image")


@pytest.mark.slow
def test_it_gives_the_vectors_of_the_torch_tower_the_same_in_batches_of_any_size_and_any_number_of_threads(space):
    tower = ImageTower.open(FOLDER)
    assert tower.fingerprint.digest == space.fingerprint.digest
    assert (tower.name, tower.dim, tower.device_type, tower.arithmetic) == ("drawn", 256, "cpu", RUNTIME)
    batch = np.stack([tower.prepare(rgb) for rgb in rgb_pictures(9)])
    np.testing.assert_array_equal(batch, np.stack([space.prepare(rgb) for rgb in rgb_pictures(9)]))
    with tower.threads(2):
        ours = tower.embed(batch)
    assert (ours.shape, ours.dtype.name, tower.embed(batch[:0]).shape) == ((9, 256), "float16", (0, 256))
    assert cosines(ours, space.embed(batch)).min() > 0.99999
    with tower.threads(1), ThreadPoolExecutor(4) as pool:
        alone = np.concatenate(list(pool.map(tower.embed, [each[None] for each in batch])))
    np.testing.assert_array_equal(alone, ours)  # to the bit: an ingest need not fill its last batch


def test_the_graph_is_whole():
    onnx.checker.check_model(onnx.load(FOLDER / IMAGE_ONNX), full_check=True)


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

from kinodex.index.spaces.image_tower import ImageTower
from tests.world.drawn_space import FOLDER
ImageTower.open(FOLDER)
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
