"""Models of the spaces that a library holds: its exported tower, else by torch, checked against what is stored."""

from __future__ import annotations

from typing import Literal

from kinodex.index.errors import SpaceMismatch, TorchMissing
from kinodex.index.spaces.embedders import ImageEmbedder, TextEmbedder
from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.index.spaces.load import load_image_tower, load_text_tower, torch_package
from kinodex.index.spaces.model_names import exported_folder
from kinodex.index.spaces.named_models import check_named
from kinodex.index.spaces.space import Space, load_space
from kinodex.index.store.carried_towers import open_image_tower, open_text_tower

Towers = Literal["both", "text", "image"]


def load_tower_of(uri: str, held: Fingerprint, towers: Towers) -> Space | TextEmbedder | ImageEmbedder:
    """Load one tower, or both, of a space that the library at `uri` holds; see `LibraryReader.load_space`."""
    if towers == "text" and (text_tower := open_text_tower(uri, held.digest)):
        return text_tower
    if towers == "image" and (image_tower := open_image_tower(uri, held.digest)):
        return image_tower
    check_named(held.name, uri)
    try:
        loaded = _loaded(held.name, towers)
    except ModuleNotFoundError as error:
        if torch_package(error) is None:
            raise
        option = " --with-image-tower" if towers == "image" else ""
        way = f"{uri} carries no exported tower for that; run `kinodex add text-tower {uri}{option}` where the model is"
        way += ", or `pip install 'kinodex[clip]'` here"
        raise TorchMissing(f"cannot embed with {held.name}: {error.name} is not installed, and {way}") from error
    if loaded.fingerprint.digest != held.digest:
        raise SpaceMismatch(
            f"got space {loaded.fingerprint}, but {uri} holds {held}: here the same name stands for other "
            "weights or other preprocessing; use those that the library was made with"
        )
    return loaded


def _loaded(name: str, towers: Towers) -> Space | TextEmbedder | ImageEmbedder:
    if towers == "both" or exported_folder(name) is None:
        return load_space(name, towers=towers)
    return load_text_tower(name) if towers == "text" else load_image_tower(name)
