"""Films drawn from their scripts frame by frame and encoded, streaming: an hour of film in a few minutes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from kinodex.pipeline.video_writer import encode_video
from tests.world.sketch import scenes
from tests.world.sketch.places import draw_place
from tests.world.sketch.script import FPS, HEIGHT_PX, WIDTH_PX, Script, Shot

FADE_FRAMES = FPS // 2
DRIFT = 0.14
TAGS = {"comment": "drawn by kinodex"}
Pixels = NDArray[np.uint8]
OnFrame = Callable[[int], object]


def render_film(script: Script, path: Path, on_frame: OnFrame = lambda number: None, every: int = 1) -> None:
    """Draw and encode the film to `path` (.mp4); the same script gives the same bytes."""
    encode_frames(draw_frames(script, every), path, on_frame, every)


def encode_frames(frames: Iterator[Pixels], path: Path, on_frame: OnFrame, every: int = 1) -> None:
    def reported() -> Iterator[Pixels]:
        for number, picture in enumerate(frames):
            on_frame(number * every)
            yield picture

    encode_video(reported(), path, width_px=WIDTH_PX, height_px=HEIGHT_PX, fps=FPS // every, tags=TAGS)


def draw_frames(script: Script, every: int = 1) -> Iterator[Pixels]:
    """Draw the frames of a film in order, all or one in `every`: uint8 [height, width, 3]."""
    last: Pixels = np.zeros((HEIGHT_PX, WIDTH_PX, 3), np.uint8)
    for number, shot in enumerate(script.shots):
        picture_of = _pictures(shot, script.seed * 100003 + number)
        for frame in range(-shot.first_frame % every, shot.frames, every):
            yield _transition(last, picture_of(frame), shot.entry, (frame + 1) / FADE_FRAMES)
        last = picture_of(shot.frames - 1)


def _transition(before: Pixels, picture: Pixels, entry: str, share: float) -> Pixels:
    if entry == "cut" or share >= 1:
        return picture
    old = before if entry == "dissolve" else np.zeros_like(picture)
    mixed: Pixels = (picture * np.float32(share) + old * np.float32(1 - share)).astype(np.uint8)
    return mixed


def _pictures(shot: Shot, seed: int) -> Callable[[int], Pixels]:
    """Return what draws a frame of a shot; where nothing has moved, it is the picture of the frame before."""
    if isinstance(shot.scene, scenes.TitleCard):
        still = np.asarray(scenes.draw_card(shot.scene, WIDTH_PX, HEIGHT_PX))
        return lambda frame: still
    background = draw_place(shot.scene.place, shot.scene.night, WIDTH_PX, HEIGHT_PX, Random(seed))
    items = scenes.lay_out(shot.scene, WIDTH_PX, HEIGHT_PX)
    drawn: dict[tuple[int, int], Pixels] = {}

    def picture_of(frame: int) -> Pixels:
        shift_x, shift_y = _shift(shot, frame)
        offset = (round(shift_x * WIDTH_PX), round(shift_y * HEIGHT_PX))
        if offset not in drawn:
            drawn.clear()
            drawn[offset] = _compose(background, items, shift_x, shift_y)
        return drawn[offset]

    return picture_of


def _compose(background: Image.Image, items: list[scenes.Pasted], shift_x: float, shift_y: float) -> Pixels:
    canvas = background.copy()
    for item in items:
        scenes.paste(canvas, item, shift_x, shift_y)
    return np.asarray(canvas)


def _shift(shot: Shot, frame: int) -> tuple[float, float]:
    """Offset of everything from its place, in fractions of width and height; zero in the middle of the shot."""
    part = frame / max(1, shot.frames - 1) - 0.5
    if shot.motion in ("left", "right"):
        crowded = isinstance(shot.scene, scenes.TitleCard) or len(shot.scene.groups) > 1 or shot.scene.groups[:1] == ()
        reach = 0.04 if crowded else DRIFT
        return (part if shot.motion == "right" else -part) * reach, 0.0
    if shot.motion in ("up", "down"):
        return 0.0, (part if shot.motion == "down" else -part) * 0.06
    if shot.motion == "bob":
        return 0.0, 0.015 * math.sin(2 * math.pi * frame / FPS / 2)
    return 0.0, 0.0
