"""One tower of a space by the space's name: as exported where kinodex brings it, any other by torch."""

from __future__ import annotations

from kinodex.index.errors import DeviceMissing, TorchMissing
from kinodex.index.spaces.embedders import ImageEmbedder, TextEmbedder
from kinodex.index.spaces.model_names import BUILTIN_SPACE, PHOTO_SPACE
from kinodex.index.spaces.space import Space, load_space
from kinodex.index.spaces.towers import SHIPPED, TowerKind

TORCH_PACKAGES = ("torch", "torchvision", "open_clip")
CPU_DEVICES = ("auto", "cpu")


def load_text_tower(name: str) -> TextEmbedder:
    """Load the text tower of a space by its name; raises a SpaceError (TorchMissing without torch)."""
    if name in SHIPPED:
        from kinodex.index.spaces.text_tower import TextTower

        return TextTower.open(SHIPPED[name])
    return _load_with_torch(name, "auto", "text")


def load_image_tower(name: str, device: str = "auto") -> ImageEmbedder:
    """Load the image tower of a space by its name on a device.

    A space that kinodex brings has its exported one, unless a GPU is named for the built-in one: it is as quick, and
    there in a twentieth of the time that importing torch takes. Raises a SpaceError: TorchMissing, or DeviceMissing,
    where torch or open_clip is needed and not there.
    """
    if name in SHIPPED and device in CPU_DEVICES:
        from kinodex.index.spaces.image_tower import ImageTower

        return ImageTower.open(SHIPPED[name])
    if name == PHOTO_SPACE:
        raise DeviceMissing(f"got device {device!r}, and the space {name} is computed on the CPU; use auto or cpu")
    return _load_with_torch(name, device, "image")


def torch_package(error: ModuleNotFoundError) -> str | None:
    """Name the missing package if it is torch or one that goes with it."""
    package = (error.name or "").partition(".")[0]
    return package if package in TORCH_PACKAGES else None


def _load_with_torch(name: str, device: str, kind: TowerKind) -> Space:
    try:
        return load_space(name, device=device, towers=kind)
    except ModuleNotFoundError as error:
        package = torch_package(error)
        if package is None:
            raise
        if name == BUILTIN_SPACE:
            raise DeviceMissing(f"got device {device!r}, and {package} is not installed; use cpu") from error
        raise TorchMissing(
            f"cannot load {name}: {package} is not installed; `pip install 'kinodex[clip]'` brings it"
        ) from error
