"""The ResNet in numpy, part by part, against torch: sizes that the built-in space does not have."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch

from kinodex.index.errors import ExportRefused, TowersDamaged
from kinodex.index.spaces.cpu import PICTURES, ImageTower
from kinodex.index.spaces.resnet import (
    IMAGE_ARRAYS,
    ResNetSettings,
    ResNetTower,
    arrays_of,
    export_resnet,
    has_resnet,
    image_features,
)
from kinodex.index.spaces.space import import_open_clip, load_space
from kinodex.index.spaces.towers import BUILTIN_TOWERS, TOWER_JSON, SpaceTowers, TowerFacts, read_towers, write_towers
from tests.support.models.tiny_models import TINY, write_model

MEAN, STD = (0.48, 0.45, 0.4), (0.27, 0.26, 0.28)
RESNET = TINY | {"vision_cfg": {"image_size": 64, "layers": [1, 2, 1, 1], "width": 16}}
GRAPH = TowerFacts({"weights": "float16"}, {}, PICTURES, 0.99999)
"""The facts of the same tower as an ONNX graph, of which this export needs no file."""


def tower(layers: tuple[int, ...], heads: int, image_px: int, dim: int) -> Any:
    """A network whose norms have all seen pictures of some other mean and deviation, and change what passes."""
    torch.manual_seed(2)
    network = import_open_clip().model.ModifiedResNet(list(layers), dim, heads, image_px, width=8).eval()
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                norms: Any = module
                norms.weight.uniform_(0.5, 1.5)
                norms.bias.normal_(0, 0.2)
                norms.running_mean.normal_(0, 0.2)
                norms.running_var.uniform_(0.5, 2)
    return network


def test_features_are_those_of_torch():
    for layers, heads, image_px, dim in (((1, 1, 1, 1), 8, 64, 16), ((2, 1, 3, 2), 4, 96, 24)):
        network = tower(layers, heads, image_px, dim)
        pixels = np.random.default_rng(4).integers(0, 256, (5, 3, image_px, image_px), dtype=np.uint8)
        mean, std = (torch.tensor(each).view(3, 1, 1) for each in (MEAN, STD))
        with torch.inference_mode():
            theirs = network((torch.from_numpy(pixels).float() / 255 - mean) / std).numpy()
        ours = image_features(arrays_of(network), ResNetSettings(layers, heads, MEAN, STD), pixels)
        assert (ours.shape, ours.dtype.name) == ((5, dim), "float32")
        np.testing.assert_allclose(ours, theirs, atol=1e-4 * np.abs(theirs).max())


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


def test_an_exported_resnet_gives_the_vectors_of_torch_or_is_refused(tmp_path):
    space = load_space(write_model(tmp_path / "model", RESNET), device="cpu", towers="image")
    (tmp_path / "made").mkdir()
    facts = export_resnet(space, tmp_path / "made", GRAPH)
    assert list(facts.files) == [IMAGE_ARRAYS]
    assert 0.9999 <= facts.least_cosine <= GRAPH.least_cosine
    assert (facts.settings["weights"], facts.settings["resnet"]["blocks"]) == ("float16", [1, 2, 1, 1])
    write_towers(tmp_path / "made", SpaceTowers(space.fingerprint, image=facts))
    made = ResNetTower.open(tmp_path / "made")
    rgbs = np.random.default_rng(5).integers(0, 256, (3, 90, 160, 3), dtype=np.uint8)
    batch = np.stack([space.prepare(rgb) for rgb in rgbs])
    np.testing.assert_allclose(made.embed(batch).astype(np.float32), space.embed(batch), atol=2e-3)
    space.image_parts()[0].act1 = torch.nn.Sigmoid()  # which the name of the class does not promise
    with pytest.raises(ExportRefused, match="in numpy has a cosine of only"):
        export_resnet(space, tmp_path / "made", GRAPH)
    assert [each.name for each in (tmp_path / "made").iterdir()] == [TOWER_JSON]
    other = load_space(write_model(tmp_path / "other", TINY), device="cpu", towers="image")
    with pytest.raises(ExportRefused, match="is a VisionTransformer, and numpy knows a ResNet"):
        export_resnet(other, tmp_path / "made", GRAPH)
