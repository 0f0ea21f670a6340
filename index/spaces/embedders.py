"""Embedders of texts and pictures as their callers see them: a loaded `Space` is both, an exported tower one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kinodex.index.spaces.fingerprint import Fingerprint


def joined_arithmetic(texts: Iterable[str]) -> str:
    """Join what several embedders, or one at several times, say of their arithmetic: each of them once."""
    return "; ".join(dict.fromkeys(part for text in texts for part in text.split("; ") if part))


class InSpace(Protocol):
    """Anything that embeds in one space."""

    @property
    def fingerprint(self) -> Fingerprint: ...
    @property
    def name(self) -> str: ...
    @property
    def dim(self) -> int: ...


class TextEmbedder(InSpace, Protocol):
    """Embeds texts in a space."""

    def embed_text(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts as unit vectors float32 [n, dim], or zeros for a text of which no word is known."""


class ImageEmbedder(InSpace, Protocol):
    """Embeds pictures in a space."""

    @property
    def device_type(self) -> str: ...
    @property
    def arithmetic(self) -> str:
        """Arithmetic that makes the vectors ("float32, ONNX Runtime 1.32.0"), for people to read."""

    def threads(self, count: int) -> AbstractContextManager[None]:
        """Compute with this many threads for each call of `embed` within a block."""

    def prepare(self, rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Make the tower's input [3, h, w] of a picture [H, W, 3]."""

    def embed(self, batch: NDArray[np.uint8]) -> NDArray[np.float16]:
        """Embed prepared pictures [n, 3, h, w] as unit vectors float16 [n, dim]."""
