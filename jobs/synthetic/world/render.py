"""Draw a script frame by frame and encode it, streaming: an hour of film in a few minutes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from jobs.synthetic.world.backgrounds import draw_place
from jobs.synthetic.world.scene import Pasted, TitleCard, draw_card, lay_out, paste
from jobs.synthetic.world.script import FPS, HEIGHT_PX, WIDTH_PX, Script, Shot
from pipeline.images.encode_video import encode_video

FADE_FRAMES = FPS // 2
DRIFT = 0.14
Pixels = NDArray[np.uint8]


def render_film(script: Script, path: Path, on_frame: Callable[[int], None] | None = None) -> None:
    """Draw and encode the film to `path` (.mp4); the same script gives the same bytes."""

    def reported_frames() -> Iterator[Pixels]:
        for number, picture in enumerate(draw_frames(script)):
            if on_frame is not None:
                on_frame(number)
            yield picture

    encode_video(reported_frames(), path, width_px=WIDTH_PX, height_px=HEIGHT_PX, fps=FPS)


def draw_frames(script: Script) -> Iterator[Pixels]:
    """Draw all frames of a film in order: uint8 [height, width, 3]."""
    last: Pixels = np.zeros((HEIGHT_PX, WIDTH_PX, 3), np.uint8)
    for number, shot in enumerate(script.shots):
        before = last
        for frame, picture in enumerate(_shot_frames(shot, script.seed * 100003 + number)):
            last = picture
            yield _transition(before, picture, shot.entry, (frame + 1) / FADE_FRAMES)


def _transition(before: Pixels, picture: Pixels, entry: str, share: float) -> Pixels:
    """Blend the frame while its shot begins: dissolving from the one before, or rising from black."""
    if entry == "cut" or share >= 1:
        return picture
    old = before if entry == "dissolve" else np.zeros_like(picture)
    mixed: Pixels = (picture * np.float32(share) + old * np.float32(1 - share)).astype(np.uint8)
    return mixed


def _shot_frames(shot: Shot, seed: int) -> Iterator[Pixels]:
    if isinstance(shot.scene, TitleCard):
        still = np.asarray(draw_card(shot.scene, WIDTH_PX, HEIGHT_PX))
        yield from (still for _ in range(shot.frames))
        return
    background = draw_place(shot.scene.place, shot.scene.night, WIDTH_PX, HEIGHT_PX, Random(seed))
    items = lay_out(shot.scene, WIDTH_PX, HEIGHT_PX)
    drawn, shown = None, np.zeros((0,), np.uint8)
    for frame in range(shot.frames):
        shift_x, shift_y = _shift(shot, frame)
        offset = (round(shift_x * WIDTH_PX), round(shift_y * HEIGHT_PX))
        if offset != drawn:
            drawn, shown = offset, _compose(background, items, shift_x, shift_y)
        yield shown


def _compose(background: Image.Image, items: list[Pasted], shift_x: float, shift_y: float) -> Pixels:
    canvas = background.copy()
    for item in items:
        paste(canvas, item, shift_x, shift_y)
    return np.asarray(canvas)


def _shift(shot: Shot, frame: int) -> tuple[float, float]:
    """Offset of everything from its place, in fractions of width and height; zero in the middle of the shot."""
    part = frame / max(1, shot.frames - 1) - 0.5
    if shot.motion in ("left", "right"):
        crowded = isinstance(shot.scene, TitleCard) or len(shot.scene.groups) > 1 or shot.scene.groups[:1] == ()
        reach = 0.04 if crowded else DRIFT
        return (part if shot.motion == "right" else -part) * reach, 0.0
    if shot.motion in ("up", "down"):
        return 0.0, (part if shot.motion == "down" else -part) * 0.06
    if shot.motion == "bob":
        return 0.0, 0.015 * math.sin(2 * math.pi * frame / FPS / 2)
    return 0.0, 0.0
