"""One tower of a space by the space's name: by torch, or the built-in space's exported one where torch is missing."""

from __future__ import annotations

from kinodex.index.errors import DeviceMissing, TorchMissing
from kinodex.index.spaces.space import Space, load_space
from kinodex.index.spaces.towers import BUILTIN_TOWERS, ImageEmbedder, TextEmbedder, TowerKind, read_towers

TORCH_PACKAGES = ("torch", "torchvision", "open_clip")
CPU_DEVICES = ("auto", "cpu")


def load_text_tower(name: str) -> TextEmbedder:
    """Load the text tower of a space by its name; raises a SpaceError (TorchMissing without torch)."""
    loaded = _load_with_torch(name, "auto", "text")
    if isinstance(loaded, Space):
        return loaded
    from kinodex.index.spaces.text_tower import TextTower

    return TextTower.open(BUILTIN_TOWERS)


def load_image_tower(name: str, device: str = "auto") -> ImageEmbedder:
    """Load the image tower of a space by its name on a device; the exported one knows "cpu" alone.

    On a CPU torch's tower is one that changes over to ONNX Runtime where that is quicker (`CpuTower`). Raises a
    SpaceError: TorchMissing for a space other than the built-in one without torch and open_clip.
    """
    loaded = _load_with_torch(name, device, "image")
    if isinstance(loaded, Space):
        if loaded.device_type != "cpu":
            return loaded
        from kinodex.index.spaces.cpu import CpuTower

        return CpuTower(loaded)
    if device not in CPU_DEVICES:
        raise DeviceMissing(f"got device {device!r}, and {loaded} is not installed; use cpu")
    from kinodex.index.spaces.resnet import open_image

    exported = open_image(BUILTIN_TOWERS)
    if exported is None:
        raise TorchMissing(
            f"cannot embed pictures with {name}: {loaded} is not installed, nor is ONNX Runtime "
            "(`pip install 'kinodex[onnx]'`)"
        )
    return exported


def torch_package(error: ModuleNotFoundError) -> str | None:
    """Name the missing package if it is torch or one that goes with it."""
    package = (error.name or "").partition(".")[0]
    return package if package in TORCH_PACKAGES else None


def _load_with_torch(name: str, device: str, kind: TowerKind) -> Space | str:
    """Load a tower with torch; for the built-in space without it, name the package that is missing."""
    try:
        return load_space(name, device=device, towers=kind)
    except ModuleNotFoundError as error:
        package = torch_package(error)
        if package is None:
            raise
        held = read_towers(BUILTIN_TOWERS) if name == "builtin" else None
        if held is not None and held.tower(kind) is not None:
            return package
        raise TorchMissing(
            f"cannot load {name}: {package} is not installed; `pip install 'kinodex[clip]'` brings it"
        ) from error
