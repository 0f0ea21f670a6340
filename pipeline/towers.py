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

    def embed(self, batch: NDArray[np.uint8]) -> NDArray[np.float16]:
        """Vectors `[n, dim]` of unit length for model inputs `[n, 3, h, w]`, as `ModelInput` makes them."""
