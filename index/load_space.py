"""Models of the spaces that a library holds: its exported tower, else by torch, checked against what is stored."""

from __future__ import annotations

from typing import Literal

from index.embedding.embedders import ImageEmbedder, TextEmbedder
from index.embedding.load_tower import torch_package
from index.embedding.space import Fingerprint, Space, load_space
from index.errors import SpaceMismatch, TorchMissing
from index.store.carried_towers import find_tower, open_image_tower, open_text_tower

Towers = Literal["both", "text", "image"]


def load_tower_of(uri: str, held: Fingerprint, towers: Towers) -> Space | TextEmbedder | ImageEmbedder:
    """Load one tower, or both, of a space that the library at `uri` holds; see `LibraryReader.load_space`."""
    if towers == "text" and (text_tower := open_text_tower(uri, held.digest)):
        return text_tower
    if towers == "image" and (image_tower := open_image_tower(uri, held.digest)):
        return image_tower
    return _load_with_torch(uri, held, towers)


def _load_with_torch(uri: str, held: Fingerprint, towers: Towers) -> Space:
    try:
        loaded = load_space(held.name, towers=towers)
    except ModuleNotFoundError as error:
        if torch_package(error) is None:
            raise
        raise TorchMissing(
            f"cannot embed with {held.name}: {error.name} is not installed, and {_way_to_tower(uri, held, towers)}"
        ) from error
    if loaded.fingerprint.digest != held.digest:
        raise SpaceMismatch(
            f"got space {loaded.fingerprint}, but {uri} holds {held}: here the same name stands for other "
            "weights or other preprocessing; use those that the library was made with"
        )
    return loaded


def _way_to_tower(uri: str, held: Fingerprint, towers: Towers) -> str:
    """Say how to get a tower of a space where neither torch nor an exported one can be used."""
    if towers == "image" and find_tower(uri, held.digest, "image"):
        return (
            f"the image tower that {uri} carries needs ONNX Runtime, which is not installed either; "
            "`pip install 'kinodex[onnx]'` brings it"
        )
    option = " --with-image-tower" if towers == "image" else ""
    return (
        f"{uri} carries no exported tower for that; run `kinodex add text-tower {uri}{option}` where "
        "the model is, or `pip install 'kinodex[clip]'` here"
    )
