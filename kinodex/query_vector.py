"""The unit vector of a query: of a text by one tower of a space, of a picture by the other, or one that is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kinodex.arguments import usage_error

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image

    from index.embedding.embedders import ImageEmbedder, TextEmbedder


def query_vector(
    query: str | Image | NDArray[Any],
    text_tower: Callable[[], TextEmbedder],
    image_tower: Callable[[], ImageEmbedder],
) -> NDArray[np.floating[Any]]:
    """Give the vector `[dim]` of a text, a picture, RGB `[height, width, 3]` of uint8, or a vector, made a unit vector.

    A tower is loaded when it is called for. Raises UsageError for anything else, and for a vector without a direction.
    """
    import numpy as np

    vector: NDArray[np.floating[Any]]
    if isinstance(query, str):
        vector = text_tower().embed_text([query])[0]
        return vector
    if isinstance(query, np.ndarray) and query.ndim == 1:
        if query.dtype.kind not in "fiu":
            raise usage_error(f"got a vector of {query.dtype}; give real numbers")
        length = float(np.linalg.norm(query))
        if not np.isfinite(length) or length == 0.0:
            raise usage_error("got a vector of length 0, or one that holds NaN or infinity; give numbers")
        vector = (query / length).astype(np.float32)
        return vector
    pixels = np.asarray(_upright(query).convert("RGB")) if hasattr(query, "convert") else np.asarray(query)
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3 or not pixels.size:
        raise usage_error(
            f"got an array of {pixels.dtype} {list(pixels.shape)}; give a text, a picture as uint8 "
            "[height, width, 3], or a vector [dim]"
        )
    tower = image_tower()
    vector = tower.embed(tower.prepare(pixels)[None])[0]
    return vector


def _upright(picture: Any) -> Image:
    """A picture turned as its camera was held, which a photograph's EXIF says."""
    from PIL import ImageOps

    turned: Image = ImageOps.exif_transpose(picture)
    return turned
