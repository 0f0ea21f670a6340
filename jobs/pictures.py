"""A picture that somebody sends as a search, read with care: it may be none, or a million pixels wide."""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kinodex.jobs.errors import UsageError

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

MOST_BYTES = 10_000_000
MOST_PIXELS = 60_000_000
SENT_PX, SENT_QUALITY = 512, 90
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP")


def read_picture(content: bytes) -> NDArray[np.uint8]:
    """Decode a picture of at most `MOST_BYTES`, as `decoded` does; raises UsageError."""
    if len(content) > MOST_BYTES:
        raise UsageError(f"got a picture of {len(content)} bytes; give at most {MOST_BYTES // 1_000_000} MB")
    return decoded(content)


def decoded(content: bytes) -> NDArray[np.uint8]:
    """Decode a JPEG, PNG, WebP, GIF or BMP as `[H, W, 3]`, turned as its camera was held; raises UsageError."""
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings(), Image.open(io.BytesIO(content), formats=FORMATS) as picture:
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # judged by its size on the next line
            if picture.width * picture.height > MOST_PIXELS:
                raise UsageError(
                    f"got a picture of {picture.width} x {picture.height} pixels; give one of at most "
                    f"{MOST_PIXELS // 1_000_000} million"
                )
            return upright(picture)
    except UnidentifiedImageError as error:  # its message names an object in memory
        raise UsageError(
            "cannot read the picture: its form is not known; give a JPEG, PNG, WebP, GIF or BMP file"
        ) from error
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise UsageError(f"cannot read the picture: {error}; give a JPEG, PNG, WebP, GIF or BMP file") from error


def upright(picture: Picture) -> NDArray[np.uint8]:
    """RGB `[height, width, 3]` of a picture, turned as its camera was held, which a photograph's EXIF says."""
    from PIL import ImageOps

    return np.asarray(ImageOps.exif_transpose(picture).convert("RGB"))


def as_jpeg(pixels: NDArray[np.uint8], side_px: int = SENT_PX) -> bytes:
    """Encode RGB `[height, width, 3]` as a JPEG of at most `side_px` on its longest side, as frames are stored."""
    from PIL import Image

    picture, encoded = Image.fromarray(pixels), io.BytesIO()
    picture.thumbnail((side_px, side_px))
    picture.save(encoded, "JPEG", quality=SENT_QUALITY)
    return encoded.getvalue()
