"""Pictures from outside: every form shows what a viewer shows, and none takes the memory or the process with it."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from kinodex.agent.models.contact_sheets import draw_sheet
from kinodex.agent.prompts.parts import scaled_jpeg
from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.tools.detection import zoom
from kinodex.index.errors import LibraryDamaged
from kinodex.jobs.errors import UsageError
from kinodex.jobs.library import picture_of
from kinodex.jobs.pictures import decoded, read_picture, upright
from kinodex.pipeline.errors import PictureError
from tests.support.command import Kinodex

GREY = np.tile(np.arange(0, 256, 4, dtype=np.uint8), (48, 1))
"""A ramp `[48, 64]`."""


def png(picture: Image.Image, **options: object) -> bytes:
    encoded = io.BytesIO()
    picture.save(encoded, "PNG", **options)
    return encoded.getvalue()


def noisy(alpha: NDArray[np.uint8]) -> Image.Image:
    """The ramp where it is opaque, and noise that nobody sees elsewhere."""
    noise = np.random.default_rng(0).integers(0, 256, (*GREY.shape, 3), np.uint8)
    seen = np.where(alpha[..., None] > 0, np.stack([GREY] * 3, axis=-1), noise)
    return Image.fromarray(np.dstack([seen, alpha]).astype(np.uint8))


def test_grey_of_sixteen_bits_and_what_is_transparent_are_as_viewers_show_them(tmp_path: Path) -> None:
    half = np.where(np.arange(64) < 32, 0, 255).astype(np.uint8)[None].repeat(48, 0)
    part = np.full(GREY.shape, 128, np.uint8)
    laid = np.where(half > 0, GREY, 0)
    indexed = Image.fromarray(GREY).convert("P")
    for picture, expected in (
        (Image.fromarray(GREY), GREY),
        (Image.fromarray(GREY.astype(np.uint16) * 257), GREY),
        (noisy(half), laid),
        (noisy(half).convert("LA"), laid),
        (noisy(part), GREY.astype(int) * 128 // 255),
    ):
        path = tmp_path / "picture.png"
        path.write_bytes(png(picture))
        for pixels in (read_picture(path.read_bytes()), decoded(path), upright(picture)):
            assert pixels.dtype == np.uint8 and pixels.shape == (48, 64, 3)
            assert np.abs(pixels.astype(int) - np.asarray(expected)[..., None]).max() <= 2, picture.mode
    assert (decoded(png(indexed, transparency=200))[GREY == 200] == 0).all(), "one colour of a palette is transparent"
    assert (decoded(png(indexed, transparency=200))[GREY == 100] == 100).all()


def claimed(width: int, height: int) -> bytes:
    """A PNG of a few bytes that says it is so large."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"\0" * 1000)) + chunk(b"IEND", b"")


BAD: dict[str, bytes] = {
    "bomb": claimed(20_000, 20_000),
    "large": claimed(9_000, 9_000),
    "two to the 31": claimed(2**31 - 1, 2**31 - 1),
    "more": claimed(2**32 - 1, 1),
    "cut off": png(Image.fromarray(GREY))[:60],
    "no picture": b"words",
    "nothing": b"",
}


@pytest.mark.parametrize("kind", BAD)
def test_a_picture_that_cannot_be_is_one_line_wherever_it_comes_from(
    kind: str, kinodex: Kinodex, library: Path, tmp_path: Path
) -> None:
    path = tmp_path / "query.png"
    path.write_bytes(BAD[kind])
    for read in (lambda: decoded(path), lambda: read_picture(BAD[kind])):
        with pytest.raises(UsageError, match="cannot read the picture"):
            read()
    ran = kinodex("search", library, "--image", path)
    assert ran.code == 2 and "query.png" in ran.error_line


@pytest.mark.parametrize("kind", BAD)
def test_a_stored_picture_that_cannot_be_is_damage_to_the_library(kind: str) -> None:
    frame = ShownFrame("v", 0, 1.0, 4096, 4096, BAD[kind])
    steps: list[Callable[[], object]] = [
        lambda: scaled_jpeg(frame, 64),
        lambda: draw_sheet([BAD[kind]], ["one"]),
        lambda: zoom(frame, (0.0, 0.0, 0.5, 0.5)),
    ]
    for step in steps:
        with pytest.raises(LibraryDamaged, match="a stored picture cannot be read"):
            step()
    with pytest.raises(PictureError, match="the stored picture cannot be read"):
        picture_of(frame)
