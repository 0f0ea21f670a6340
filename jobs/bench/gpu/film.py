"""Films to measure decoding with: drawn here, of the size and with the grain of camera footage."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from jobs.synthetic.world.render import draw_frames
from jobs.synthetic.world.script import write_script
from pipeline.images.encode_video import encode_video
from pipeline.images.repeat_video import repeat_video

FPS, KEY_FRAME_S = 24, 10
DRAWN_S, REPEATS = 20, 6
"""Seconds that are drawn, and their repeats in a film of two minutes."""
SIZE_PX = (1280, 720)
GRAIN, GRAIN_PX, GRAINS = 10, 2, 8
"""Levels that grain adds or takes away at most, its size, and the number of different fields of it."""
SCRIPT_S = 60.0
MP4_SUFFIXES = (".mp4", ".m4v", ".mov")


def draw_film(path: Path, seconds: int = DRAWN_S, repeats: int = REPEATS, size_px: tuple[int, int] = SIZE_PX) -> None:
    """Draw a sketch film with grain, encode it as H.264 at 24 frames a second, and repeat it to its length.

    Grain keeps the encoder from coding most blocks as unchanged, which would make the film cheaper to decode than
    footage is.
    """
    short = path.with_name(f"short-{path.name}")
    frames = islice(_frames(size_px), seconds * FPS)
    encode_video(frames, short, width_px=size_px[0], height_px=size_px[1], fps=FPS, key_frame_s=KEY_FRAME_S)
    repeat_video(short, path, repeats)
    short.unlink()


def number_copies(films: Sequence[Path], folder: Path, count: int) -> list[Path]:
    """Make `count` videos of `films`, each other bytes and so another video to a library, with the same frames.

    An MP4 file takes an empty box at its end; a film in another container is used once, as it is.
    """
    copies = list(films[:count])
    sources = [film for film in films if film.suffix.lower() in MP4_SUFFIXES]
    for number in range(count - len(copies) if sources else 0):
        film = sources[number % len(sources)]
        copy = folder / f"copy-{number:03d}{film.suffix}"
        if not copy.exists():
            copy.write_bytes(film.read_bytes() + struct.pack(">I4sI", 12, b"free", number))
        copies.append(copy)
    return copies


def _frames(size_px: tuple[int, int]) -> Iterator[NDArray[np.uint8]]:
    """Draw the frames of a script in px of another size, with grain."""
    width_px, height_px = size_px
    random = np.random.default_rng(0)
    cells = (GRAINS, -(-height_px // GRAIN_PX), -(-width_px // GRAIN_PX), 1)
    fields = random.integers(-GRAIN, GRAIN + 1, cells, dtype=np.int16)
    fields = fields.repeat(GRAIN_PX, 1).repeat(GRAIN_PX, 2)[:, :height_px, :width_px]
    for number, frame in enumerate(draw_frames(write_script("film", SCRIPT_S, 5))):
        scaled = Image.fromarray(frame).resize(size_px, Image.Resampling.BILINEAR)
        yield np.clip(np.asarray(scaled, np.int16) + fields[number % GRAINS], 0, 255).astype(np.uint8)
