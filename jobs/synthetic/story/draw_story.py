"""Draw a story film frame by frame and encode it, streaming."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from jobs.synthetic.story.casting import Prop
from jobs.synthetic.story.cutting import in_view, landmark_box, sign_box
from jobs.synthetic.story.film import Setting, StoryFilm, StoryScene, StoryShot, View
from jobs.synthetic.story.stage import ITEM_SIDE, position
from jobs.synthetic.world.backgrounds import draw_place
from jobs.synthetic.world.scene import draw_card
from jobs.synthetic.world.script import FPS, HEIGHT_PX, WIDTH_PX
from jobs.synthetic.world.sprites import sprite
from pipeline.images.encode_video import encode_video

Pixels = NDArray[np.uint8]
Placed = tuple[Prop, bool, int, int, int]
"""A thing, mirrored or not, its left and top edge and its side in pixels of the frame."""
BOARD, INK, POST = (246, 240, 222), (28, 28, 34), (96, 70, 48)


def render_story(film: StoryFilm, path: Path, on_frame: Callable[[int], None] | None = None) -> None:
    """Draw and encode the film to `path` (.mp4); the same film gives the same bytes."""

    def reported_frames() -> Iterator[Pixels]:
        for number, picture in enumerate(draw_frames(film)):
            if on_frame is not None:
                on_frame(number)
            yield picture

    encode_video(reported_frames(), path, width_px=WIDTH_PX, height_px=HEIGHT_PX, fps=FPS)


def draw_frames(film: StoryFilm, every: int = 1) -> Iterator[Pixels]:
    """Draw the frames of a film in order, all or one in `every` of its story: uint8 [height, width, 3]."""
    for shot in film.shots:
        first = -(-shot.first_frame // every) * every
        frames = range(first, shot.first_frame + shot.frames, every)
        if shot.card is not None:
            still = np.asarray(draw_card(shot.card, WIDTH_PX, HEIGHT_PX))
            yield from (still for _ in frames)
        elif shot.scene is not None:
            yield from _shot_frames(film.scenes[shot.scene], shot, frames)


def _shot_frames(scene: StoryScene, shot: StoryShot, frames: range) -> Iterator[Pixels]:
    """Draw a shot; where nothing has moved the frame before is shown again."""
    ground = draw_setting(scene.setting, shot.view)
    before: list[Placed] | None = None
    picture: Pixels = np.asarray(ground)
    for frame in frames:
        placed = _placed(scene, frame / FPS, shot.view)
        if placed != before:
            picture, before = _compose(ground, placed, night=scene.setting.night), placed
        yield picture


def _placed(scene: StoryScene, time_s: float, view: View) -> list[Placed]:
    """Place everything on stage in the frame, the farthest first and small things before those who hold them."""
    found: list[tuple[bool, float, Placed]] = []
    for track in scene.tracks:
        key = position(track, time_s)
        if key is None:
            continue
        side = max(3, round(key.side / view.width * HEIGHT_PX))
        left = round((key.x - view.left) / view.width * WIDTH_PX - side / 2)
        top = round((key.y - view.top) / view.width * HEIGHT_PX - side / 2)
        item = key.side <= ITEM_SIDE
        found.append((item, key.y + key.side / 2, (track.prop, track.mirrored, left, top, side)))
    return [placed for _, _, placed in sorted(found, key=lambda each: each[:2])]


def _compose(ground: Image.Image, placed: list[Placed], *, night: bool) -> Pixels:
    canvas = ground.copy()
    for prop, mirrored, left, top, side in placed:
        picture = _sprite(prop, side, night, mirrored)
        canvas.paste(picture, (left, top), picture)
    return np.asarray(canvas)


@lru_cache(maxsize=512)
def _sprite(prop: Prop, side_px: int, night: bool, mirrored: bool) -> Image.Image:
    return sprite(prop.thing, prop.colour, side_px, night=night, mirrored=mirrored)


def draw_setting(setting: Setting, view: View) -> Image.Image:
    """Draw an empty setting, its landmark and sign, as a view shows it."""
    width, height = round(WIDTH_PX / view.width), round(HEIGHT_PX / view.width)
    stage = draw_place(setting.place, setting.night, width, height, Random(setting.seed))
    left, top, _, bottom = landmark_box(setting)
    picture = _sprite(setting.landmark, round((bottom - top) * height), setting.night, False)
    stage.paste(picture, (round(left * width), round(top * height)), picture)
    _draw_sign(stage, setting)
    corner = (round(view.left * width), round(view.top * height))
    return stage.crop((*corner, corner[0] + WIDTH_PX, corner[1] + HEIGHT_PX))


def _draw_sign(stage: Image.Image, setting: Setting) -> None:
    """Draw the board and its post, lit by night so that it can be read."""
    box = sign_box(setting)
    if box is None or setting.sign is None:
        return
    left, top, right, bottom = (round(each * side) for each, side in zip(box, stage.size * 2, strict=True))
    pen, middle = ImageDraw.Draw(stage), (left + right) // 2
    post = max(2, stage.width // 110)
    pen.rectangle((middle - post // 2, bottom, middle + post // 2, round(0.72 * stage.height)), fill=POST)
    pen.rounded_rectangle((left, top, right, bottom), radius=post, fill=BOARD, outline=INK, width=max(1, post // 3))
    font = _font(setting.sign, round((right - left) * 0.88), round((bottom - top) * 0.62))
    pen.text((middle, (top + bottom) // 2), setting.sign, fill=INK, font=font, anchor="mm")


@lru_cache(maxsize=256)
def _font(text: str, width_px: int, height_px: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """Find the largest font in which a text fits."""
    size = height_px
    while size > 6 and ImageFont.load_default(size).getlength(text) > width_px:
        size -= 1
    return ImageFont.load_default(size)


def text_box(setting: Setting, view: View) -> tuple[float, float, float, float] | None:
    """Compute the box of a sign's board in the frame, as fractions; None where it is not wholly in view."""
    box = sign_box(setting)
    return None if box is None else in_view(box, view)
