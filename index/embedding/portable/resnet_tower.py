"""The image tower of a ResNet in numpy: the built-in space's own, for a machine with neither torch nor ONNX Runtime."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from index.embedding.fingerprint import Fingerprint
from index.embedding.portable.array_file import ArrayFile
from index.embedding.portable.image_tower import PictureFit
from index.embedding.portable.resnet import Floats, ResNetSettings, image_features
from index.embedding.portable.tower_files import TowerFacts, read_whole
from index.errors import BadCheckpoint, TowersDamaged

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
