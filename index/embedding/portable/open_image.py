"""Open an exported image tower by the means of this machine: ONNX Runtime, or numpy for a ResNet."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from index.embedding.embedders import ImageEmbedder
from index.embedding.portable.tower_files import read_whole


def open_image(folder: Path) -> ImageEmbedder | None:
    """Open the image tower of a folder with `tower.json`; None for one that needs ONNX Runtime where that is missing.

    Raises TowersDamaged if the folder holds none, or a damaged one.
    """
    if find_spec("onnxruntime") is not None:
        from index.embedding.portable.image_tower import ImageTower

        return ImageTower.open(folder)
    from index.embedding.portable.resnet_tower import ResNetTower, has_resnet

    return ResNetTower.open(folder) if has_resnet(read_whole(folder, "image")[1]) else None
