"""One tower of a space by the space's name: as exported where its folder is known, any other by torch."""

from __future__ import annotations

from pathlib import Path

from kinodex.index.errors import DeviceMissing, TorchMissing
from kinodex.index.spaces.embedders import ImageEmbedder, TextEmbedder
from kinodex.index.spaces.model_names import EXPORTED, absolute_name, check_exported, exported_folder
from kinodex.index.spaces.named_models import note_model
from kinodex.index.spaces.space import Space, load_space
from kinodex.index.spaces.towers import TowerKind

TORCH_PACKAGES = ("torch", "torchvision", "open_clip")
CPU_DEVICES = ("auto", "cpu")


def load_text_tower(name: str) -> TextEmbedder:
    """Load the text tower of a space by its name; raises a SpaceError (TorchMissing without torch)."""
    if folder := _folder_with(name, "text"):
        from kinodex.index.spaces.text_tower import TextTower

        return TextTower.open(folder, absolute_name(name))
    return _load_with_torch(name, "auto", "text")


def load_image_tower(name: str, device: str = "auto") -> ImageEmbedder:
    """Load the image tower of a space by its name on a device.

    Exported ones run on the CPU. Raises a SpaceError: DeviceMissing for one of them on another device, TorchMissing
    where torch or open_clip is needed and not there.
    """
    if exported_folder(name) is not None and device not in CPU_DEVICES:
        raise DeviceMissing(f"got device {device!r}, and the space {name} is computed on the CPU; use auto or cpu")
    if folder := _folder_with(name, "image"):
        from kinodex.index.spaces.image_tower import ImageTower

        return ImageTower.open(folder, absolute_name(name))
    return _load_with_torch(name, device, "image")


def torch_package(error: ModuleNotFoundError) -> str | None:
    """Name the missing package if it is torch or one that goes with it."""
    package = (error.name or "").partition(".")[0]
    return package if package in TORCH_PACKAGES else None


def _folder_with(name: str, kind: TowerKind) -> Path | None:
    """Return the folder with this exported tower of a space, which counts as named; None for one that torch loads."""
    folder = exported_folder(name)
    if folder is not None:
        check_exported(name, kind)
    if name.startswith(EXPORTED):
        note_model(absolute_name(name))
    return folder


def _load_with_torch(name: str, device: str, kind: TowerKind) -> Space:
    try:
        return load_space(name, device=device, towers=kind)
    except ModuleNotFoundError as error:
        package = torch_package(error)
        if package is None:
            raise
        raise TorchMissing(
            f"cannot load {name}: {package} is not installed; `pip install 'kinodex[clip]'` brings it"
        ) from error
