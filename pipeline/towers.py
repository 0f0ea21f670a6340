"""What a caller must bring to turn pictures into vectors."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class ImageTower(Protocol):
    """The image half of an embedding space; this room knows no model by name."""

    @property
    def dim(self) -> int:
        """Length of a vector."""

    @property
    def input_side_px(self) -> int:
        """The shortest side that a picture should have before `prepare` sees it."""

    def prepare(self, rgb: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Model input `[3, h, w]` of a picture `[height, width, 3]`; called from a worker thread."""

    def embed(self, batch: NDArray[np.float32]) -> NDArray[np.float16]:
        """Vectors `[n, dim]` of unit length for model inputs `[n, 3, h, w]`."""
