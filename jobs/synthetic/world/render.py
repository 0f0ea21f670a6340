"""Draws a script frame by frame and encodes it: H.264 in MP4, streaming, an hour of film in a few minutes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import av
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from jobs.synthetic.world.backgrounds import draw_place
from jobs.synthetic.world.scene import Pasted, TitleCard, draw_card, lay_out, paste
from jobs.synthetic.world.script import FPS, HEIGHT_PX, WIDTH_PX, Script, Shot

FADE_FRAMES = FPS // 2
DRIFT = 0.14
Pixels = NDArray[np.uint8]


def shoot(script: Script, path: Path, on_frame: Callable[[int], None] | None = None) -> None:
    """Writes the film to `path` (.mp4). One encoder thread, so that the same script gives the same bytes."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=FPS)
        stream.width, stream.height, stream.pix_fmt = WIDTH_PX, HEIGHT_PX, "yuv420p"
        stream.options = {"preset": "veryfast", "crf": "26", "threads": "1", "g": str(10 * FPS)}
        for number, picture in enumerate(pictures(script)):
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            frame.pts = number
            container.mux(stream.encode(frame))
            if on_frame is not None:
                on_frame(number)
        container.mux(stream.encode())


def pictures(script: Script) -> Iterator[Pixels]:
    """All frames of a film in order: uint8 [height, width, 3]."""
    last: Pixels = np.zeros((HEIGHT_PX, WIDTH_PX, 3), np.uint8)
    for number, shot in enumerate(script.shots):
        before = last
        for frame, picture in enumerate(_shot_pictures(shot, script.seed * 100003 + number)):
            last = picture
            yield _entering(before, picture, shot.entry, (frame + 1) / FADE_FRAMES)


def _entering(before: Pixels, picture: Pixels, entry: str, share: float) -> Pixels:
    """The picture while its shot begins: dissolving from the one before, or rising from black."""
    if entry == "cut" or share >= 1:
        return picture
    old = before if entry == "dissolve" else np.zeros_like(picture)
    mixed: Pixels = (picture * np.float32(share) + old * np.float32(1 - share)).astype(np.uint8)
    return mixed


def _shot_pictures(shot: Shot, seed: int) -> Iterator[Pixels]:
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
            drawn, shown = offset, _picture(background, items, shift_x, shift_y)
        yield shown


def _picture(background: Image.Image, items: list[Pasted], shift_x: float, shift_y: float) -> Pixels:
    canvas = background.copy()
    for item in items:
        paste(canvas, item, shift_x, shift_y)
    return np.asarray(canvas)


def _shift(shot: Shot, frame: int) -> tuple[float, float]:
    """How far everything has moved from its place, in fractions of width and height; half way through it is there."""
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
