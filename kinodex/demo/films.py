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
        "cat": ("a cat", "What animal is it?", "a cat", "a cow, a horse, an elephant"),
        "coffee": (
            "a cup of coffee",
            "What stands on the wooden table?",
            "a cup of coffee",
            "a laptop, a telephone, a vase",
        ),
        "dogs": (
            "two dogs looking out of a window",
            "Who looks out of the window?",
            "two dogs",
            "a baby, a cat, a man",
        ),
        "brushes": ("paint brushes", "What is full of paint?", "brushes", "a bucket, a shirt, a wall"),
        "fig": ("a cut fig in a bowl", "What is in the red bowl?", "a cut fig", "a fish, an egg, bread"),
    },
    "outdoors": {
        "stream": ("a stream in a forest", "What runs through the forest?", "a stream", "a horse, a road, a train"),
        "mountains": ("mountains with snow", "What lies on the mountains?", "snow", "a lake, a village, sand"),
        "dandelions": ("dandelions in a meadow", "What grows in the meadow?", "dandelions", "cactus, grapes, wheat"),
        "sunset": ("a sunset over hills", "What goes down over the hills?", "the sun", "a balloon, an airplane, rain"),
        "flower": ("an orange flower", "What colour is the flower?", "orange", "blue, violet, white"),
    },
    "away": {
        "pagoda": (
            "a temple by a lake",
            "Which building stands by the lake?",
            "a temple",
            "a barn, a church, a factory",
        ),
        "rocket": ("a rocket at night", "What is about to start?", "a rocket", "a concert, a race, a ship"),
        "astronaut": (
            "an astronaut in an orange suit",
            "Who wears an orange suit?",
            "an astronaut",
            "a clown, a fisherman, a waiter",
        ),
        "photographer": (
            "a man with a camera on a tripod",
            "What does the man look through?",
            "a camera",
            "a fence, a newspaper, a window",
        ),
    },
}
"""Titles of the films; of each the photographs in order; of each the words that it is searched by, a question about it,
its answer, and other options. None was left out for how it goes.
"""
SHOT_S, FPS = 7, 10
WIDTH_PX, HEIGHT_PX = 512, 288
ZOOM = 0.15
"""Part of the view's width that is lost from the beginning of a shot to its end."""


@dataclass(frozen=True, slots=True)
class Shot:
    """A photograph in a film, from `start_s` until before `end_s`, with a search and a question about it."""

    film: str
    photograph: str
    start_s: float
    end_s: float
    words: str
    question: str
    answer: str
    options: tuple[str, ...]
    """In the order of the alphabet, the answer among them."""


def shots() -> dict[str, Shot]:
    """List all shots by photograph; each photograph is shown once.

    >>> shot = shots()["mountains"]
    >>> shot.film, shot.start_s, shot.end_s, shot.question, shot.options
    ('outdoors', 7, 14, 'What lies on the mountains?', ('a lake', 'a village', 'sand', 'snow'))
    """
    found = {}
    for film, photographs in FILMS.items():
        for number, (photograph, (words, question, answer, others)) in enumerate(photographs.items()):
            start_s, options = number * SHOT_S, tuple(sorted([answer, *others.split(", ")]))
            found[photograph] = Shot(film, photograph, start_s, start_s + SHOT_S, words, question, answer, options)
    return found


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
