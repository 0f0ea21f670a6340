"""Pictures that are sent: read as they are, and refused where they are none or far too large."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from kinodex.jobs.errors import UsageError
from kinodex.jobs.pictures import MOST_BYTES, read_picture


def encoded(kind: str, size: tuple[int, int] = (6, 4), **options: object) -> bytes:
    held = io.BytesIO()
    Image.new("RGB", size, (200, 30, 30)).save(held, kind, **options)
    return held.getvalue()


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF", "BMP"])
def test_a_picture_of_each_kind_is_read(kind):
    rgb = read_picture(encoded(kind))
    assert rgb.shape == (4, 6, 3) and np.abs(rgb.astype(int) - (200, 30, 30)).max() <= 8


def test_a_photo_stands_as_its_camera_was_held():
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    assert read_picture(encoded("JPEG", exif=exif)).shape == (6, 4, 3)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "cannot read"),
        (b"<svg onload=alert(1)>", "cannot read"),
        (encoded("JPEG")[:60], "cannot read"),
        (encoded("TIFF"), "cannot read"),
        (encoded("PNG", (10_000, 7_000)), "70|pixels"),
        (b"x" * (MOST_BYTES + 1), "at most 10 MB"),
    ],
    ids=["empty", "svg", "cut", "tiff", "huge", "heavy"],
)
def test_what_is_no_picture_or_too_large_is_refused(content, says):
    with pytest.raises(UsageError, match=says) as caught:
        read_picture(content)
    assert "0x" not in str(caught.value), "the address of an object"
