"""Damage of the ResNet in numpy; `test_cpu` compares its vectors with those of torch."""

from __future__ import annotations

import json
import shutil

import pytest

from kinodex.index.errors import TowersDamaged
from kinodex.index.spaces.resnet import (
    IMAGE_ARRAYS,
    ResNetSettings,
    ResNetTower,
    has_resnet,
)
from kinodex.index.spaces.towers import BUILTIN_TOWERS, TOWER_JSON, read_towers


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
