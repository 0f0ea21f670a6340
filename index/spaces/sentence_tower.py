"""An exported sentence model without torch: a text tower and its prompts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.index.spaces.sentence_facts import ModelFacts
from kinodex.index.spaces.text_tower import TextTower


class SentenceEmbedder(Protocol):
    """Embeds texts in the space of a sentence model; `space` is its identity."""

    @property
    def space(self) -> Fingerprint: ...

    def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed queries as unit vectors float32 [n, dim]."""

    def embed_lines(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed lines that are searched as unit vectors float32 [n, dim]."""


class SentenceTower:
    """Embeds texts as the sentence model does that was exported. Several threads may use one at once."""

    def __init__(self, tower: TextTower) -> None:
        self._tower = tower
        self.facts = ModelFacts.of(tower.fingerprint)

    @classmethod
    def open(cls, folder: Path) -> SentenceTower:
        """Open the tower of a folder; raises TowersDamaged or BadCheckpoint as `TextTower.open` does."""
        return cls(TextTower.open(folder))

    @property
    def space(self) -> Fingerprint:
        """Identity of the model."""
        return self._tower.fingerprint

    def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed queries as unit vectors float32 [n, dim]."""
        return self._tower.embed_text([self.facts.query(text) for text in texts])

    def embed_lines(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed lines that are searched as unit vectors float32 [n, dim]."""
        return self._tower.embed_text([self.facts.line(text) for text in texts])
