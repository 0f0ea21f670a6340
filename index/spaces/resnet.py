"""The image tower of CLIP's ResNets in numpy, for the small one of the built-in space: pictures to features.

The network is that of Radford et al. 2021, section 2.3.2: three convolutions, four stages of bottlenecks that halve the
picture by averaging, and a layer of attention whose query is the mean. Norms are folded into the convolutions before
them. A convolution is a product of matrices, with a row for each place of the picture.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from kinodex.index.errors import BadCheckpoint, TowersDamaged
from kinodex.index.spaces.cpu import PictureFit
from kinodex.index.spaces.towers import (
    ArrayFile,
    Fingerprint,
    ImageEmbedder,
    TowerFacts,
    read_whole,
)

Floats = NDArray[np.float32]
KERNEL = 3


@dataclass(frozen=True, slots=True)
class ResNetSettings:
    """The facts of a ResNet that the shapes of its weights do not show."""

    blocks: tuple[int, ...]
    """Number of bottlenecks in each stage."""
    heads: int
    """Heads of the attention at its end."""
    mean: tuple[float, ...]
    std: tuple[float, ...]
    """Of the colours, 0 to 1, by which pictures are normalised."""

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> ResNetSettings:
        """Read settings from JSON values; raises TypeError or KeyError if they are another's."""
        mean, std = (tuple(map(float, found[name])) for name in ("mean", "std"))
        return cls(tuple(map(int, found["blocks"])), int(found["heads"]), mean, std)


def image_features(weights: Mapping[str, Floats], settings: ResNetSettings, pixels: NDArray[np.uint8]) -> Floats:
    """Compute the features of pictures [n, 3, h, w], with sides of whole 32s: float32 [n, dim], not normalised."""
    mean, std = (np.array(each, np.float32) for each in (settings.mean, settings.std))
    states: Floats = ((pixels.transpose(0, 2, 3, 1).astype(np.float32) / 255 - mean) / std).astype(
        np.float32, copy=False
    )
    for number in range(3):
        states = _relu(_convolve(weights, f"stem.{number}", states, stride=1 if number else 2))
    states = _halve(states)
    for stage, count in enumerate(settings.blocks):
        for block in range(count):
            states = _bottleneck(weights, f"stages.{stage}.{block}.", states, halves=stage > 0 and block == 0)
    return _attend(weights, settings.heads, states)


def _bottleneck(weights: Mapping[str, Floats], name: str, states: Floats, halves: bool) -> Floats:
    inner = _relu(_product(weights, f"{name}narrow", states))
    inner = _relu(_convolve(weights, f"{name}middle", inner, stride=1))
    if halves:
        states, inner = _halve(states), _halve(inner)
    changed = _product(weights, f"{name}wide", inner)
    changed += _product(weights, f"{name}beside", states) if f"{name}beside.weight" in weights else states
    return _relu(changed)


def _attend(weights: Mapping[str, Floats], heads: int, states: Floats) -> Floats:
    """Pool places by attention whose query is their mean: [n, h, w, channels] to [n, dim]."""
    count, channels = len(states), states.shape[-1]
    places = states.reshape(count, -1, channels)
    tokens = np.concatenate([places.mean(axis=1, keepdims=True), places], axis=1) + weights["pool.positions"]
    query, keys, values = (
        _product(weights, f"pool.{name}", each).reshape(count, -1, heads, channels // heads)
        for name, each in (("query", tokens[:, :1]), ("keys", tokens), ("values", tokens))
    )
    scores = np.einsum("nqhd,nkhd->nhk", query, keys) / np.float32(np.sqrt(channels // heads))
    shares: Floats = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    return _product(weights, "pool.out", np.einsum("nhk,nkhd->nhd", shares, values).reshape(count, channels))


def _product(weights: Mapping[str, Floats], name: str, states: Floats) -> Floats:
    flat = states.reshape(-1, states.shape[-1]) @ weights[f"{name}.weight"]
    flat += weights[f"{name}.bias"]
    return flat.reshape(*states.shape[:-1], -1)


def _convolve(weights: Mapping[str, Floats], name: str, states: Floats, stride: int) -> Floats:
    """Convolve [n, h, w, channels] by 3 by 3 with a border of zeros; a row of three neighbours is one run of memory."""
    count, height, width, channels = states.shape
    padded = np.zeros((count, height + 2, width + 2, channels), np.float32)
    padded[:, 1:-1, 1:-1] = states
    of_picture, of_row, of_place, _ = padded.strides
    shape = (count, -(-height // stride), -(-width // stride), KERNEL, KERNEL * channels)
    strides = (of_picture, stride * of_row, stride * of_place, of_row, padded.itemsize)
    around = as_strided(padded, shape, strides, writeable=False).reshape(*shape[:3], KERNEL * KERNEL * channels)
    return _product(weights, name, around)


def _halve(states: Floats) -> Floats:
    """Average each 2 by 2 places."""
    count, height, width, channels = states.shape
    fours = states.reshape(count, height // 2, 2, width // 2, 2, channels)
    sums = fours[:, :, 0, :, 0] + fours[:, :, 0, :, 1] + fours[:, :, 1, :, 0] + fours[:, :, 1, :, 1]
    halved: Floats = np.divide(sums, 4, dtype=np.float32)
    return halved


def _relu(states: Floats) -> Floats:
    return np.maximum(states, 0, out=states)


# The image tower of a ResNet in numpy: the built-in space's own, for a machine with neither torch nor ONNX Runtime.

RESNET = "resnet"
"""Key of the tower's settings under those of the image tower in `tower.json`."""
IMAGE_ARRAYS = "image.safetensors"
AT_ONCE = 4
"""Pictures in one product of matrices: more are no quicker, and take more memory."""


class ResNetTower:
    """Embeds pictures as the space does whose ResNet was exported. Several threads may use one at once."""

    device_type = "cpu"

    def __init__(self, fingerprint: Fingerprint, settings: ResNetSettings, weights: Mapping[str, Floats]) -> None:
        self.fingerprint = fingerprint
        self.name = fingerprint.name
        self.dim = fingerprint.dim
        self._fit = PictureFit.of(fingerprint.preprocess)
        self._settings = settings
        self._weights = weights

    @classmethod
    def open(cls, folder: Path) -> ResNetTower:
        """Open the ResNet of a folder with `tower.json`; raises TowersDamaged if it holds none or a damaged one."""
        space, tower = read_whole(folder, "image")
        try:
            settings = ResNetSettings.from_json(tower.settings[RESNET])
            return cls(space, settings, read_weights(folder / IMAGE_ARRAYS))
        except (TypeError, KeyError, BadCheckpoint) as error:
            raise TowersDamaged(f"the image tower in {folder} cannot be read: {error!r}") from error

    @property
    def arithmetic(self) -> str:
        """Arithmetic that makes the vectors."""
        return f"float32, numpy {np.__version__}"

    def prepare(self, rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Make the tower's input [3, h, w] of a picture [H, W, 3]: the same bytes as open_clip's own transform."""
        return self._fit.prepare(rgb)

    def embed(self, batch: NDArray[np.uint8]) -> NDArray[np.float16]:
        """Embed prepared pictures [n, 3, h, w] as unit vectors float16 [n, dim]."""
        vectors = np.empty((len(batch), self.dim), np.float16)
        for first in range(0, len(batch), AT_ONCE):
            features = image_features(self._weights, self._settings, batch[first : first + AT_ONCE])
            vectors[first : first + AT_ONCE] = features / np.linalg.norm(features, axis=1, keepdims=True)
        return vectors

    @contextmanager
    def threads(self, count: int) -> Iterator[None]:
        """Change nothing: numpy's library of matrices takes its number of threads from the environment at its start."""
        yield


def has_resnet(tower: TowerFacts) -> bool:
    """Return True for an image tower that numpy can compute too."""
    return RESNET in tower.settings


def read_weights(path: Path) -> dict[str, Floats]:
    """Read all arrays of a file as float32; raises BadCheckpoint if it is damaged."""
    file = ArrayFile(path)
    with file.reader() as reader:
        return {name: reader.whole(name) for name in file.names()}


# Open an exported image tower by the means of this machine: ONNX Runtime, or numpy for a ResNet.


def open_image(folder: Path) -> ImageEmbedder | None:
    """Open the image tower of a folder; None for one that needs ONNX Runtime where that is missing."""
    if find_spec("onnxruntime") is not None:
        from kinodex.index.spaces.cpu import ImageTower

        return ImageTower.open(folder)

    return ResNetTower.open(folder) if has_resnet(read_whole(folder, "image")[1]) else None
