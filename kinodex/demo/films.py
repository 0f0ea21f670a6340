"""Make films of photographs, each shot a slow pan and zoom over one; what is shown when is known.

They stand in for real footage, of which none that may be shipped was at hand. NOTICE.md beside the photographs says who
took them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kinodex.pipeline.video_writer import encode_video

PHOTOGRAPHS = Path(__file__).parent / "photographs"
FILMS = {
    "home": {
        "cat": "a cat",
        "coffee": "a cup of coffee",
        "dogs": "two dogs looking out of a window",
        "brushes": "paint brushes",
        "fig": "a cut fig in a bowl",
    },
    "outdoors": {
        "stream": "a stream in a forest",
        "mountains": "mountains with snow",
        "dandelions": "dandelions in a meadow",
        "sunset": "a sunset over hills",
        "flower": "an orange flower",
    },
    "away": {
        "pagoda": "a temple by a lake",
        "rocket": "a rocket at night",
        "astronaut": "an astronaut in an orange suit",
        "photographer": "a man with a camera on a tripod",
    },
}
"""Titles of the films, of each the photographs in order, of each the words that it is searched by."""
SHOT_S, FPS = 7, 10
WIDTH_PX, HEIGHT_PX = 512, 288
ZOOM = 0.15
"""Part of the view's width that is lost from the beginning of a shot to its end."""


@dataclass(frozen=True, slots=True)
class Shot:
    """A photograph in a film, from `start_s` until before `end_s`, and the words that it is searched by."""

    film: str
    photograph: str
    words: str
    start_s: float
    end_s: float


def shots() -> dict[str, Shot]:
    """List all shots by photograph; each photograph is shown once.

    >>> shots()["mountains"]
    Shot(film='outdoors', photograph='mountains', words='mountains with snow', start_s=7, end_s=14)
    """
    return {
        photograph: Shot(film, photograph, words, number * SHOT_S, (number + 1) * SHOT_S)
        for film, photographs in FILMS.items()
        for number, (photograph, words) in enumerate(photographs.items())
    }


def write_films(folder: Path) -> list[Path]:
    """Write the films into a folder and return their paths; one that is there already stays."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{film}.mp4" for film in FILMS]
    for path, photographs in zip(paths, FILMS.values(), strict=True):
        if not path.exists():
            partial = path.with_suffix(".part.mp4")
            frames = (frame for photograph in photographs for frame in _pan(PHOTOGRAPHS / f"{photograph}.jpg"))
            encode_video(frames, partial, width_px=WIDTH_PX, height_px=HEIGHT_PX, fps=FPS)
            partial.rename(path)
    return paths


def _pan(photograph: Path) -> Iterator[NDArray[np.uint8]]:
    """Yield the frames of a shot: the view moves from the top left to the bottom right, and nearer."""
    from PIL import Image

    with Image.open(photograph) as file:
        picture = file.convert("RGB")
        widest = min(picture.width, picture.height * WIDTH_PX / HEIGHT_PX)
        for number in range(SHOT_S * FPS):
            share = number / (SHOT_S * FPS)
            width = widest * (1 - ZOOM * share)
            height = width * HEIGHT_PX / WIDTH_PX
            left, top = (picture.width - width) * share, (picture.height - height) * share
            view = picture.resize(
                (WIDTH_PX, HEIGHT_PX), Image.Resampling.BICUBIC, (left, top, left + width, top + height)
            )
            yield np.asarray(view)
