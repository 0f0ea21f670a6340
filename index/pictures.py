"""Pictures that come from outside, from a caller or a foreign library, opened with care: every other place asks here.

One may be none, cut off, or a few bytes that claim more pixels than fit into memory.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kinodex.index.errors import LibraryDamaged
from kinodex.index.named_files import read_bytes

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

MOST_PIXELS = 60_000_000
STORED = ("JPEG",)
"""The form of the pictures in a library."""


class NotAPicture(Exception):
    """Bytes that cannot be opened as a picture, or make too large a one; the message is the reason."""


class TooManyPixels(NotAPicture):
    """A picture that is too large; the message says what is not."""


@contextmanager
def opened_picture(source: bytes | Path, formats: tuple[str, ...]) -> Iterator[Picture]:
    """Open a picture of one of PIL's `formats`; raises NotAPicture, also where what follows meets a damaged part."""
    from PIL import Image, UnidentifiedImageError

    try:
        content = read_bytes(source) if isinstance(source, Path) else source
    except OSError as error:
        raise NotAPicture(error.strerror or str(error)) from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # judged by its size below
            picture = Image.open(io.BytesIO(content), formats=formats)
        with picture:
            if picture.width * picture.height > MOST_PIXELS:
                millions = MOST_PIXELS // 1_000_000
                size = f"{picture.width} x {picture.height} pixels"
                raise TooManyPixels(f"{size}; give one of at most {millions} million")
            yield picture
    except UnidentifiedImageError as error:  # its message names an object in memory
        raise NotAPicture("its form is not known") from error
    except (OSError, SyntaxError, ValueError, OverflowError, Image.DecompressionBombError) as error:
        raise NotAPicture(getattr(error, "strerror", None) or str(error)) from error


@contextmanager
def stored_picture(jpeg: bytes) -> Iterator[Picture]:
    """Open a picture that a library holds; raises LibraryDamaged."""
    try:
        with opened_picture(jpeg, STORED) as picture:
            yield picture
    except NotAPicture as error:
        raise LibraryDamaged(
            f"a stored picture cannot be read ({error}); `kinodex maintain --check --deep` names its video"
        ) from error
