"""The ResNet in numpy, part by part, against torch: sizes that the built-in space does not have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from kinodex.index.spaces.resnet import ResNetSettings, arrays_of, image_features
from kinodex.index.spaces.space import import_open_clip

SIZES = [((1, 1, 1, 1), 8, 64, 16), ((2, 1, 3, 2), 4, 96, 24)]
MEAN, STD = (0.48, 0.45, 0.4), (0.27, 0.26, 0.28)


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


@pytest.mark.parametrize(("layers", "heads", "image_px", "dim"), SIZES, ids=["small", "deep"])
def test_features_are_those_of_torch(layers, heads, image_px, dim):
    network = tower(layers, heads, image_px, dim)
    pixels = np.random.default_rng(4).integers(0, 256, (5, 3, image_px, image_px), dtype=np.uint8)
    mean, std = (torch.tensor(each).view(3, 1, 1) for each in (MEAN, STD))
    with torch.inference_mode():
        theirs = network((torch.from_numpy(pixels).float() / 255 - mean) / std).numpy()
    ours = image_features(arrays_of(network), ResNetSettings(layers, heads, MEAN, STD), pixels)
    assert ours.shape == (5, dim)
    assert ours.dtype == np.float32
    np.testing.assert_allclose(ours, theirs, atol=1e-4 * np.abs(theirs).max())


def test_settings_of_another_tower_are_refused():
    found = {"blocks": [1, 2], "heads": 4, "mean": [0.5], "std": [0.5]}
    assert ResNetSettings.from_json(found) == ResNetSettings((1, 2), 4, (0.5,), (0.5,))
    with pytest.raises(KeyError):
        ResNetSettings.from_json({"blocks": [1]})
