"""The sketch world: its vocabulary, its scenes, and the drawing of one as an image."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from random import Random

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from tests.world.sketch.places import draw_place
from tests.world.sketch.things import COLOUR_RGB, FLYING, THINGS, Rgb, sprite

# fmt: off
THING_NAMES = tuple(THINGS)
COLOUR_NAMES = tuple(COLOUR_RGB)
WHERE = {
    "sea": "at sea", "desert": "in the desert", "snow": "in the snow", "forest": "in the forest",
    "city": "in the city", "mountains": "in the mountains", "meadow": "in the meadow", "room": "in the room",
}
"""The places, with the words that say where."""
PLACE_NAMES = tuple(WHERE)
TITLE_WORDS = (
    "HARBOUR", "MORNING", "JOURNEY", "SECRET", "WINTER", "SUMMER", "LANTERN", "RIVER", "THUNDER", "GARDEN",
    "MARKET", "ISLAND", "SILVER", "MIDNIGHT", "RETURN", "PROMISE", "ORCHARD", "SIGNAL", "VOYAGE", "FESTIVAL",
    "COPPER", "ECHO", "MIRROR", "QUARTZ",
)
PLURALS = {
    "fish": "fish", "scissors": "scissors", "person": "people", "bus": "buses", "house": "houses",
    "butterfly": "butterflies", "cactus": "cacti",
}
# fmt: on
NUMBERS = ("no", "one", "two", "three", "four", "five")
SIDE_OF_SIZE = {"small": 0.25, "medium": 0.37, "large": 0.54}
MIDDLE_X = {"left": 0.2, "middle": 0.5, "right": 0.8}
MIDDLE_OF_TWO = {"left": 0.26, "middle": 0.5, "right": 0.74}
CARD_PAINTS = (
    ((18, 18, 24), (240, 240, 235)),
    ((236, 232, 220), (30, 30, 34)),
    ((30, 50, 96), (250, 240, 200)),
    ((120, 28, 32), (250, 236, 220)),
    ((24, 84, 60), (240, 240, 220)),
)
"""Paper and ink of title cards."""


def plural(thing: str) -> str:
    return PLURALS.get(thing, thing + "s")


def with_article(phrase: str) -> str:
    if phrase.split()[-1] == "scissors":
        return phrase
    return ("an " if phrase[0] in "aeiou" else "a ") + phrase


@dataclass(frozen=True, slots=True)
class Group:
    """One or several of the same thing, "left", "middle" or "right"; `lift`, 0 to 1, is its height in ground or sky."""

    thing: str
    colour: str
    count: int = 1
    size: str = "medium"
    position: str = "middle"
    lift: float = 0.5
    mirrored: bool = False


def named(group: Group, *, colour: bool = True) -> str:
    """Name the things of a group without their number: "red boat", or "boats" without the colour."""
    noun = plural(group.thing) if group.count > 1 or group.thing == "scissors" else group.thing
    return f"{group.colour} {noun}" if colour else noun


def counted(group: Group) -> str:
    """Name a group with its number: "a red boat" or "three red boats"."""
    return f"{NUMBERS[group.count]} {named(group)}" if group.count > 1 else with_article(named(group))


@dataclass(frozen=True, slots=True)
class Scene:
    place: str
    night: bool = False
    groups: tuple[Group, ...] = ()


@dataclass(frozen=True, slots=True)
class TitleCard:
    word: str
    paper: Rgb = (18, 18, 24)
    ink: Rgb = (240, 240, 235)


@dataclass(frozen=True, slots=True)
class Pasted:
    picture: Image.Image
    x: float
    y: float


def draw(scene: Scene | TitleCard, width_px: int, height_px: int, seed: int) -> NDArray[np.uint8]:
    """Draw a scene: uint8 [height, width, 3]. The same arguments give the same bytes."""
    if isinstance(scene, TitleCard):
        return np.asarray(draw_card(scene, width_px, height_px))
    canvas = draw_place(scene.place, scene.night, width_px, height_px, Random(seed))
    for item in lay_out(scene, width_px, height_px):
        paste(canvas, item)
    return np.asarray(canvas)


def paste(canvas: Image.Image, item: Pasted, shift_x: float = 0.0, shift_y: float = 0.0) -> None:
    left = round((item.x + shift_x) * canvas.width - item.picture.width / 2)
    top = round((item.y + shift_y) * canvas.height - item.picture.height / 2)
    canvas.paste(item.picture, (left, top), item.picture)


def lay_out(scene: Scene, width_px: int, height_px: int) -> list[Pasted]:
    """Place every thing of a scene; groups share the width equally, so many things in a row are smaller."""
    aspect = width_px / height_px
    room = aspect / max(1, len(scene.groups))
    items: list[Pasted] = []
    for group in scene.groups:
        side = min(SIDE_OF_SIZE[group.size], 0.96 * room / group.count)
        picture = sprite(
            group.thing, group.colour, max(4, round(side * height_px)), night=scene.night, mirrored=group.mirrored
        )
        if group.thing in FLYING:
            y = 0.04 + side / 2 + group.lift * 0.28 * (1 - side)
        else:
            y = 0.96 - side / 2 - group.lift * 0.22 * (1 - side)
        if len(scene.groups) == 1 and group.count > 1:
            middle = 0.5
        else:
            middle = (MIDDLE_OF_TWO if len(scene.groups) == 2 else MIDDLE_X)[group.position]
        steps = (number - (group.count - 1) / 2 for number in range(group.count))
        items.extend(Pasted(picture, middle + step * (side / aspect) * 1.04, y) for step in steps)
    return items


def draw_card(card: TitleCard, width_px: int, height_px: int) -> Image.Image:
    canvas = Image.new("RGB", (width_px, height_px), card.paper)
    pen = ImageDraw.Draw(canvas)
    font = _font(round(min(height_px * 0.24, 1.25 * width_px / len(card.word))))
    pen.text((width_px / 2, height_px / 2), card.word, fill=card.ink, font=font, anchor="mm")
    margin = height_px * 0.08
    pen.rectangle(
        (margin, margin, width_px - margin, height_px - margin), outline=card.ink, width=max(1, height_px // 120)
    )
    return canvas


@lru_cache(maxsize=64)
def _font(size_px: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size_px)
