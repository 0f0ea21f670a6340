"""Pictures and vectors as users give them to a search."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

from kinodex.jobs.errors import UsageError
from kinodex.search.vectors import Floats

if TYPE_CHECKING:
    from PIL.Image import Image

Picture: TypeAlias = "bytes | Path | Image | NDArray[Any]"
"""A file's content or place, a PIL picture, RGB `[height, width, 3]` of uint8, or a vector `[dim]` of the space."""


def is_vector(picture: Picture | None) -> TypeGuard[Floats]:
    """Return True for a vector of the space in the place of a picture."""
    return isinstance(picture, np.ndarray) and picture.ndim == 1


def upright_pixels(picture: Any) -> NDArray[np.uint8]:
    """Return RGB `[height, width, 3]` of a picture, turned as its camera was held (EXIF); raises UsageError."""
    from kinodex.jobs.pictures import decoded, read_picture, upright

    if isinstance(picture, bytes):
        return read_picture(picture)
    if isinstance(picture, Path):
        return decoded(picture)
    pixels = upright(picture) if hasattr(picture, "convert") else np.asarray(picture)
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3 or not pixels.size:
        raise UsageError(
            f"got an array of {pixels.dtype} {list(pixels.shape)}; give a text, a picture as uint8 "
            "[height, width, 3], or a vector [dim]"
        )
    return pixels


def unit_vector(values: NDArray[Any]) -> Floats:
    """Return a vector `[dim]` scaled to length 1; raises UsageError for one without a direction."""
    if values.dtype.kind not in "fiu":
        raise UsageError(f"got a vector of {values.dtype}; give real numbers")
    length = float(np.linalg.norm(values))
    if not np.isfinite(length) or length == 0.0:
        raise UsageError("got a vector of length 0, or one that holds NaN or infinity; give numbers")
    vector: Floats = (values / length).astype(np.float32)
    return vector
