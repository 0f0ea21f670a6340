"""Exporting a ResNet of CLIP's to arrays for numpy: an open_clip model with random weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from kinodex.index.errors import ExportRefused
from kinodex.index.spaces.cpu import PICTURES
from kinodex.index.spaces.resnet import IMAGE_ARRAYS, ResNetTower, export_resnet
from kinodex.index.spaces.space import load_space
from kinodex.index.spaces.towers import SpaceTowers, TowerFacts, write_towers
from tests.support.models.tiny_models import TINY, write_model

RESNET = TINY | {"vision_cfg": {"image_size": 64, "layers": [1, 2, 1, 1], "width": 16}}
GRAPH = TowerFacts({"weights": "float16"}, {}, PICTURES, 0.99999)
"""The facts of the same tower as an ONNX graph, of which this export needs no file."""


@pytest.fixture(scope="module")
def name(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_model(tmp_path_factory.mktemp("model"), RESNET)


def test_an_exported_resnet_gives_the_vectors_of_torch(name, tmp_path):
    space = load_space(name, device="cpu", towers="image")
    facts = export_resnet(space, tmp_path, GRAPH)
    assert list(facts.files) == [IMAGE_ARRAYS]
    assert 0.9999 <= facts.least_cosine <= GRAPH.least_cosine
    assert facts.settings["weights"] == "float16"
    assert facts.settings["resnet"]["blocks"] == [1, 2, 1, 1]
    write_towers(tmp_path, SpaceTowers(space.fingerprint, image=facts))
    tower = ResNetTower.open(tmp_path)
    rgbs = np.random.default_rng(5).integers(0, 256, (3, 90, 160, 3), dtype=np.uint8)
    batch = np.stack([space.prepare(rgb) for rgb in rgbs])
    np.testing.assert_allclose(tower.embed(batch).astype(np.float32), space.embed(batch), atol=2e-3)


def test_a_tower_of_another_kind_is_refused(tmp_path):
    space = load_space(write_model(tmp_path / "model", TINY), device="cpu", towers="image")
    with pytest.raises(ExportRefused, match="is a VisionTransformer, and numpy knows a ResNet"):
        export_resnet(space, tmp_path, GRAPH)


def test_a_resnet_that_numpy_computes_otherwise_is_refused(name, tmp_path: Path):
    """Its activations are not those that the class name promises."""
    space = load_space(name, device="cpu", towers="image")
    space.image_parts()[0].act1 = torch.nn.Sigmoid()
    with pytest.raises(ExportRefused, match="in numpy has a cosine of only"):
        export_resnet(space, tmp_path, GRAPH)
    assert list(tmp_path.iterdir()) == []
