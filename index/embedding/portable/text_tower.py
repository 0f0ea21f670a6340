"""Text tower of a space without torch: tokenizer and transformer of an exported one, read from its folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.embedding.fingerprint import Fingerprint
from index.embedding.portable import tokenizer
from index.embedding.portable.array_file import ArrayFile
from index.embedding.portable.tower_files import read_whole
from index.embedding.portable.transformer import TransformerSettings, text_features
from index.errors import TowersDamaged

WEIGHTS = "text.safetensors"
TEXT_BATCH = 16


@dataclass(frozen=True, slots=True)
class TextSettings:
    """Settings of an exported text tower; JSON values in `tower.json`."""

    transformer: TransformerSettings
    tokenizer: tokenizer.TokenizerSettings

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> TextSettings:
        """Read settings from JSON values; raises TypeError or KeyError if they are another's."""
        of_tokenizer = tokenizer.settings_from_json(found["tokenizer"])
        return cls(TransformerSettings(**found["transformer"]), of_tokenizer)


class TextTower:
    """Embeds texts as the space does whose text tower was exported. Several threads may use one at once."""

    def __init__(self, folder: Path, fingerprint: Fingerprint, settings: TextSettings) -> None:
        """Read the tokenizer, and of the weights the header; raises BadCheckpoint if a file is damaged."""
        self.fingerprint = fingerprint
        self.settings = settings
        self._weights = ArrayFile(folder / WEIGHTS)
        self._tokenizer = tokenizer.Tokenizer(folder, settings.tokenizer)

    @classmethod
    def open(cls, folder: Path) -> TextTower:
        """Open the text tower of a folder with its `tower.json`.

        Raises TowersDamaged if there is none, or a file is not as it was written; BadCheckpoint if it cannot be read.
        """
        space, tower = read_whole(folder, "text")
        try:
            settings = TextSettings.from_json(tower.settings)
        except (TypeError, KeyError) as error:
            raise TowersDamaged(f"the settings of the text tower in {folder} are not known here: {error}") from error
        return cls(folder, space, settings)

    @property
    def name(self) -> str:
        """Name of the space."""
        return self.fingerprint.name

    @property
    def dim(self) -> int:
        """Numbers of a vector."""
        return self.fingerprint.dim

    def token_ids(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Make the token ids [n, context length] of texts."""
        return self._tokenizer(texts)

    def embed_text(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts as unit vectors float32 [n, dim]."""
        vectors = np.empty((len(texts), self.dim), np.float32)
        if not texts:
            return vectors
        ids = self.token_ids(texts)
        shortest_first = np.argsort((ids != ids[:, -1:]).sum(1), kind="stable")  # so that a batch is as short as it can
        with self._weights.reader() as reader:
            for first in range(0, len(texts), TEXT_BATCH):
                rows = shortest_first[first : first + TEXT_BATCH]
                vectors[rows] = text_features(reader, self.settings.transformer, ids[rows])
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        units: NDArray[np.float32] = vectors / np.maximum(lengths, np.float32(1e-12))
        return units
