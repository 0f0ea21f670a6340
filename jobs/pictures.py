"""A picture that somebody sends as a search, read with care: it may be none, or a million pixels wide."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kinodex.index.pictures import NotAPicture, opened_picture
from kinodex.jobs.errors import UsageError

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

MOST_BYTES = 10_000_000
LEVELS_16 = 1 << 16
SENT_PX, SENT_QUALITY = 512, 90
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP")


def read_picture(content: bytes) -> NDArray[np.uint8]:
    """Decode a picture of at most `MOST_BYTES`, as `decoded` does; raises UsageError."""
    if len(content) > MOST_BYTES:
        raise UsageError(f"got a picture of {len(content)} bytes; give at most {MOST_BYTES // 1_000_000} MB")
    return decoded(content)


def decoded(source: bytes | Path) -> NDArray[np.uint8]:
    """Decode a JPEG, PNG, WebP, GIF or BMP as `upright` does, of bytes or of a file; raises UsageError."""
    try:
        with opened_picture(source, FORMATS) as picture:
            return upright(picture)
    except NotAPicture as error:
        which = f"the picture {source}" if isinstance(source, Path) else "the picture"
        raise UsageError(f"cannot read {which}: {error}; give a JPEG, PNG, WebP, GIF or BMP file") from error


def upright(picture: Picture) -> NDArray[np.uint8]:
    """RGB `[height, width, 3]` of a picture, turned as its camera was held, which a photograph's EXIF says.

    What is transparent is laid over black, as it is in videos; of grey in 16 bits the upper eight are kept.
    """
    from PIL import Image, ImageOps

    turned = ImageOps.exif_transpose(picture)
    if turned.mode.startswith("I"):
        levels = np.asarray(turned).astype(np.int64)
        turned = Image.fromarray((levels.clip(0, LEVELS_16 - 1) // 257).astype(np.uint8))
    if turned.has_transparency_data:
        ground = Image.new("RGBA", turned.size, (0, 0, 0, 255))
        turned = Image.alpha_composite(ground, turned.convert("RGBA"))
    return np.asarray(turned.convert("RGB"))


def as_jpeg(pixels: NDArray[np.uint8], side_px: int = SENT_PX) -> bytes:
    """Encode RGB `[height, width, 3]` as a JPEG of at most `side_px` on its longest side, as frames are stored."""
    from PIL import Image

    picture, encoded = Image.fromarray(pixels), io.BytesIO()
    picture.thumbnail((side_px, side_px))
    picture.save(encoded, "JPEG", quality=SENT_QUALITY)
    return encoded.getvalue()
