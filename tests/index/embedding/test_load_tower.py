"""One tower by a space's name, with torch and in a process that has none."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from kinodex.index.spaces.cpu import CpuTower
from kinodex.index.spaces.load import load_image_tower, load_text_tower, torch_package
from kinodex.index.spaces.space import Space

WITHOUT_TORCH = """
import sys
from tests.support.without_modules import hide
hide(sys.argv[1].split(","))
import numpy as np
from kinodex.index.spaces.load import load_image_tower, load_text_tower
from kinodex.index.errors import SpaceError
print(load_text_tower("builtin").embed_text(["a red boat"])[0].tolist())
for name, device in (("ViT-B-32/openai", "cpu"), ("builtin", "cuda")):
    try:
        load_image_tower(name, device)
    except SpaceError as error:
        print(type(error).__name__, error)
tower = load_image_tower("builtin")
print(tower.arithmetic)
print(tower.embed(np.full((1, 3, 128, 128), 77, np.uint8))[0].tolist())
"""


def lines_without(packages: str) -> list[str]:
    command = [sys.executable, "-c", WITHOUT_TORCH, packages]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def test_with_torch_a_tower_is_the_spaces_own():
    text, image = load_text_tower("builtin"), load_image_tower("builtin", "cpu")
    assert isinstance(text, Space) and isinstance(image, CpuTower)
    assert text.fingerprint == image.fingerprint


@pytest.mark.slow
@pytest.mark.parametrize(("also", "arithmetic"), [("", "float32, ONNX Runtime "), (",onnxruntime", "float32, numpy ")])
def test_without_torch_the_built_in_space_is_loaded_as_exported(also, arithmetic):
    text, missing, on_cuda, made_in, image = lines_without(f"torch,torchvision,open_clip{also}")
    assert made_in.startswith(arithmetic)
    expected = load_text_tower("builtin").embed_text(["a red boat"])[0]
    np.testing.assert_allclose(json.loads(text), expected, atol=1e-4)
    expected = load_image_tower("builtin", "cpu").embed(np.full((1, 3, 128, 128), 77, np.uint8))[0]
    np.testing.assert_allclose(json.loads(image), expected.astype(np.float32), atol=1e-3)
    assert missing.startswith("TorchMissing cannot load ViT-B-32/openai: torch is not installed; `pip install")
    assert on_cuda == "DeviceMissing got device 'cuda', and torch is not installed; use cpu"


def test_packages_that_go_with_torch():
    assert torch_package(ModuleNotFoundError(name="torch.nn")) == "torch"
    assert torch_package(ModuleNotFoundError(name="av")) is None
