"""Everything that is drawn in the sketch world: each thing by name, with an outline, and the eight places."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from random import Random

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

Rgb = tuple[int, int, int]
Point = tuple[float, float]

COLOUR_RGB: dict[str, Rgb] = {
    "red": (214, 32, 38),
    "orange": (247, 130, 20),
    "yellow": (250, 218, 30),
    "green": (40, 158, 58),
    "blue": (34, 84, 214),
    "purple": (124, 44, 168),
    "pink": (250, 134, 190),
    "brown": (118, 68, 32),
    "white": (248, 248, 248),
    "black": (24, 24, 28),
}

INK, PALE, GLASS, METAL, WOOD = (30, 30, 34), (238, 238, 232), (168, 214, 232), (150, 156, 164), (150, 106, 62)
FLYING = frozenset({"bird", "butterfly", "plane", "helicopter", "rocket", "balloon", "kite", "star", "heart", "ghost"})
MASTER_SIDE_PX = 192


@lru_cache(maxsize=1024)
def master(thing: str, colour: str) -> Image.Image:
    """Draw a thing in a colour: RGBA, `MASTER_SIDE_PX` square, with a thin outline that keeps it off any background."""
    pen = Pen(colour, 2 * MASTER_SIDE_PX)
    DRAWINGS[thing](pen)
    inner = pen.sheet.resize((MASTER_SIDE_PX - 8, MASTER_SIDE_PX - 8), Image.Resampling.BOX)
    picture = Image.new("RGBA", (MASTER_SIDE_PX, MASTER_SIDE_PX))
    picture.paste(inner, (4, 4))
    edge = picture.getchannel("A").filter(ImageFilter.MaxFilter(5))
    rim = Image.new("RGBA", picture.size, (150, 150, 156) if colour == "black" else (28, 28, 32))
    rim.putalpha(edge)
    return Image.alpha_composite(rim, picture)


def sprite(thing: str, colour: str, side_px: int, *, night: bool, mirrored: bool) -> Image.Image:
    """Draw a thing scaled to `side_px`, dimmed a little by night; RGBA."""
    picture = master(thing, colour).resize((side_px, side_px), Image.Resampling.BILINEAR, reducing_gap=2.0)
    if mirrored:
        picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    if not night:
        return picture
    pixels = np.asarray(picture).copy()
    pixels[..., :3] = (pixels[..., :3] * np.array([0.78, 0.78, 0.86])).astype(np.uint8)
    return Image.fromarray(pixels, "RGBA")


def paint_of(colour: str) -> tuple[Rgb, Rgb, Rgb]:
    """Mix the paint of a colour: itself, darker and lighter; black is shaded lighter, because it cannot get darker."""
    red, green, blue = COLOUR_RGB[colour]
    if colour == "black":
        return (red, green, blue), (62, 62, 68), (92, 92, 98)
    shade = (int(red * 0.72), int(green * 0.72), int(blue * 0.72))
    return (red, green, blue), shade, (red + (255 - red) // 3, green + (255 - green) // 3, blue + (255 - blue) // 3)


class Pen:
    """A pen for a square sheet whose sides run from 0 to 100, y down.

    Attributes `body`, `shade` and `light` are the paint of the thing that is drawn.
    """

    def __init__(self, colour: str, side_px: int) -> None:
        self.sheet = Image.new("RGBA", (side_px, side_px))
        self.body, self.shade, self.light = paint_of(colour)
        self._draw = ImageDraw.Draw(self.sheet)
        self._scale = side_px / 100.0

    def poly(self, fill: Rgb, *corners: Point) -> None:
        self._draw.polygon(self._scaled_points(corners), fill=fill)

    def box(self, fill: Rgb, left: float, top: float, right: float, bottom: float, round_by: float = 0) -> None:
        self._draw.rounded_rectangle(self._px(left, top, right, bottom), radius=round_by * self._scale, fill=fill)

    def oval(self, fill: Rgb, left: float, top: float, right: float, bottom: float) -> None:
        self._draw.ellipse(self._px(left, top, right, bottom), fill=fill)

    def dot(self, fill: Rgb, x: float, y: float, radius: float) -> None:
        self.oval(fill, x - radius, y - radius, x + radius, y + radius)

    def line(self, fill: Rgb, width: float, *points: Point) -> None:
        """Draw a line through points, with round ends and joints."""
        self._draw.line(self._scaled_points(points), fill=fill, width=self._width_px(width), joint="curve")
        for x, y in points:
            self.dot(fill, x, y, width / 2)

    def ring(self, fill: Rgb, x: float, y: float, radius: float, width: float) -> None:
        """Draw a circle's outline; `radius` is the outer one."""
        box = self._px(x - radius, y - radius, x + radius, y + radius)
        self._draw.ellipse(box, outline=fill, width=self._width_px(width))

    def arc(self, fill: Rgb, width: float, box: Sequence[float], start_deg: float, end_deg: float) -> None:
        """Draw part of an ellipse's outline, clockwise from three o'clock."""
        self._draw.arc(self._px(*box), start_deg, end_deg, fill=fill, width=self._width_px(width))

    def pie(self, fill: Rgb, box: Sequence[float], start_deg: float, end_deg: float) -> None:
        """Fill a slice of an ellipse, clockwise from three o'clock."""
        self._draw.pieslice(self._px(*box), start_deg, end_deg, fill=fill)

    def erase(self, x: float, y: float, radius: float) -> None:
        self._draw.ellipse(self._px(x - radius, y - radius, x + radius, y + radius), fill=(0, 0, 0, 0))

    def _px(self, *lengths: float) -> list[float]:
        return [length * self._scale for length in lengths]

    def _scaled_points(self, points: Sequence[Point]) -> list[Point]:
        return [(x * self._scale, y * self._scale) for x, y in points]

    def _width_px(self, width: float) -> int:
        return max(1, round(width * self._scale))


def star_points(x: float, y: float, outer: float, inner: float, points: int) -> list[Point]:
    corners = []
    for step in range(2 * points):
        radius = inner if step % 2 else outer
        angle = math.pi * step / points - math.pi / 2
        corners.append((x + radius * math.cos(angle), y + radius * math.sin(angle)))
    return corners


# Animals, people and plants.

SKIN = (236, 188, 150)


def _legs(pen: Pen, *xs: float, top: float = 66, bottom: float = 96, width: float = 7) -> None:
    for x in xs:
        pen.line(pen.shade, width, (x, top), (x, bottom))


def fish(pen: Pen) -> None:
    pen.poly(pen.shade, (68, 50), (98, 24), (90, 50), (98, 76))
    pen.poly(pen.shade, (36, 32), (58, 12), (62, 34))
    pen.oval(pen.body, 4, 26, 76, 74)
    pen.arc(pen.shade, 3, (14, 30, 40, 70), -60, 60)
    pen.dot(PALE, 20, 44, 6)
    pen.dot(INK, 19, 44, 3)


def bird(pen: Pen) -> None:
    pen.poly(pen.body, (50, 60), (2, 18), (20, 14), (58, 44))
    pen.poly(pen.shade, (50, 60), (98, 12), (80, 8), (44, 44))
    pen.oval(pen.body, 32, 42, 68, 74)
    pen.poly(pen.shade, (44, 70), (36, 96), (58, 96), (56, 70))
    pen.dot(pen.body, 50, 36, 12)
    pen.poly((240, 160, 30), (45, 38), (50, 54), (55, 38))
    pen.dot(INK, 45, 33, 2.5)
    pen.dot(INK, 55, 33, 2.5)


def cat(pen: Pen) -> None:
    pen.line(pen.body, 8, (74, 88), (92, 78), (92, 54), (84, 44))
    pen.oval(pen.body, 24, 50, 78, 98)
    pen.poly(pen.body, (22, 34), (20, 2), (44, 18))
    pen.poly(pen.body, (78, 34), (80, 2), (56, 18))
    pen.oval(pen.body, 20, 12, 80, 60)
    pen.oval((120, 210, 90), 32, 28, 44, 40)
    pen.oval((120, 210, 90), 56, 28, 68, 40)
    pen.dot(INK, 38, 34, 3)
    pen.dot(INK, 62, 34, 3)
    pen.poly(pen.light, (46, 44), (54, 44), (50, 50))
    for y in (44, 50):
        pen.line(pen.shade, 2, (6, y), (34, 47))
        pen.line(pen.shade, 2, (94, y), (66, 47))


def dog(pen: Pen) -> None:
    _legs(pen, 30, 42, 72, 82)
    pen.line(pen.body, 7, (84, 50), (98, 28))
    pen.box(pen.body, 26, 44, 88, 72, 12)
    pen.poly(pen.body, (24, 60), (26, 26), (48, 26), (48, 60))
    pen.box(pen.body, 4, 24, 44, 48, 9)
    pen.oval(pen.shade, 34, 20, 50, 56)
    pen.dot(INK, 6, 30, 5)
    pen.dot(PALE, 24, 31, 3.5)
    pen.dot(INK, 24, 31, 2)
    pen.line((220, 40, 40), 4, (28, 54), (46, 56))


def horse(pen: Pen) -> None:
    _legs(pen, 32, 42, 76, 86, top=56)
    pen.line(pen.shade, 8, (88, 44), (97, 60), (96, 78))
    pen.oval(pen.body, 26, 36, 92, 68)
    pen.poly(pen.body, (28, 58), (14, 14), (32, 8), (54, 42))
    pen.poly(pen.body, (20, 6), (34, 12), (12, 38), (2, 34))
    pen.poly(pen.body, (24, 10), (28, 0), (32, 12))
    pen.line(pen.shade, 7, (32, 8), (46, 26), (54, 40))
    pen.dot(INK, 20, 18, 2.5)


def elephant(pen: Pen) -> None:
    for x in (36, 52, 72, 86):
        pen.box(pen.shade, x - 7, 62, x + 6, 96, 3)
    pen.box(pen.body, 26, 26, 96, 76, 24)
    pen.dot(pen.body, 28, 40, 22)
    pen.line(pen.body, 11, (12, 46), (8, 66), (8, 84), (16, 90))
    pen.oval(pen.shade, 28, 20, 54, 60)
    pen.line(PALE, 5, (17, 60), (24, 70), (32, 70))
    pen.dot(INK, 18, 36, 3)


def snake(pen: Pen) -> None:
    wave = [(10 + x, 62 + 18 * math.sin(x / 11)) for x in range(0, 76, 2)]
    pen.line(pen.body, 13, *wave)
    for x, y in wave[3::6]:
        pen.dot(pen.light, x, y, 3)
    pen.line(pen.body, 13, (84, 62), (86, 40), (80, 30))
    pen.oval(pen.body, 62, 16, 94, 38)
    pen.line((230, 30, 60), 2.5, (64, 30), (50, 34))
    pen.dot(PALE, 74, 23, 4)
    pen.dot(INK, 73, 23, 2)


def butterfly(pen: Pen) -> None:
    for side, left in ((-1, 10), (1, 56)):
        pen.poly(pen.body, (50, 48), (50 + 46 * side, 6), (50 + 46 * side, 46), (50 + 20 * side, 56))
        pen.oval(pen.body, left, 50, left + 34, 90)
        pen.dot(pen.light, 50 + 34 * side, 28, 7)
        pen.dot(pen.shade, 50 + 24 * side, 70, 6)
        pen.line(INK, 2, (50, 30), (50 + 14 * side, 8))
    pen.oval(INK, 45, 24, 55, 84)


def snail(pen: Pen) -> None:
    pen.box((214, 190, 140), 8, 76, 94, 90, 7)
    pen.line((214, 190, 140), 10, (14, 82), (14, 52))
    pen.line((214, 190, 140), 3, (12, 50), (6, 34))
    pen.line((214, 190, 140), 3, (16, 50), (22, 34))
    pen.dot(INK, 6, 33, 3)
    pen.dot(INK, 22, 33, 3)
    pen.dot(pen.body, 60, 52, 34)
    pen.ring(pen.shade, 60, 52, 24, 4)
    pen.ring(pen.shade, 60, 52, 12, 4)


def turtle(pen: Pen) -> None:
    skin = (150, 176, 96)
    pen.dot(skin, 12, 58, 11)
    for x in (30, 72):
        pen.box(skin, x - 8, 66, x + 8, 88, 5)
    pen.poly(skin, (84, 68), (99, 76), (84, 78))
    pen.pie(pen.body, (16, 20, 90, 120), 180, 360)
    pen.box(pen.shade, 14, 66, 92, 74, 4)
    for x in (36, 53, 70):
        pen.poly(pen.shade, *[(x + 8 * math.cos(a), 48 + 8 * math.sin(a)) for a in (0, 1.05, 2.1, 3.14, 4.2, 5.2)])
    pen.dot(INK, 8, 55, 2.5)


def rabbit(pen: Pen) -> None:
    pen.oval(pen.body, 30, 0, 44, 46)
    pen.oval(pen.body, 56, 0, 70, 46)
    pen.oval(pen.light, 34, 6, 40, 40)
    pen.oval(pen.light, 60, 6, 66, 40)
    pen.oval(pen.body, 24, 56, 76, 99)
    pen.oval(pen.body, 26, 32, 74, 70)
    pen.oval(pen.shade, 24, 88, 46, 99)
    pen.oval(pen.shade, 54, 88, 76, 99)
    for x in (40, 60):
        pen.dot(INK, x, 48, 3.5)
    pen.box(PALE, 46, 58, 54, 68)
    pen.dot((240, 120, 140), 50, 56, 3.5)


def duck(pen: Pen) -> None:
    pen.poly(pen.body, (70, 62), (98, 44), (92, 72))
    pen.oval(pen.body, 18, 48, 92, 90)
    pen.line(pen.body, 15, (32, 62), (32, 34))
    pen.dot(pen.body, 30, 26, 17)
    pen.poly((244, 140, 24), (16, 24), (0, 30), (2, 38), (18, 36))
    pen.pie(pen.shade, (40, 44, 84, 80), 0, 180)
    pen.dot(PALE, 26, 22, 4)
    pen.dot(INK, 25, 22, 2.5)


def spider(pen: Pen) -> None:
    for side in (-1, 1):
        for knee, foot in ((22, 34), (36, 48), (60, 66), (76, 86)):
            pen.line(pen.shade, 4, (50, 52), (50 + 28 * side, knee - 6), (50 + 46 * side, foot))
    pen.dot(pen.body, 50, 60, 22)
    pen.dot(pen.body, 50, 34, 13)
    pen.dot(PALE, 45, 30, 4)
    pen.dot(PALE, 55, 30, 4)


def tree(pen: Pen) -> None:
    pen.box(WOOD, 42, 56, 58, 98)
    pen.dot(pen.shade, 28, 46, 22)
    pen.dot(pen.shade, 72, 46, 22)
    pen.dot(pen.body, 50, 30, 28)
    pen.dot(pen.body, 36, 52, 16)
    pen.dot(pen.body, 64, 52, 16)


def flower(pen: Pen) -> None:
    stem = (60, 130, 60)
    pen.line(stem, 5, (50, 40), (50, 98))
    pen.oval(stem, 50, 68, 80, 82)
    pen.oval(stem, 20, 76, 50, 90)
    for step in range(6):
        angle = step * math.pi / 3
        pen.dot(pen.body, 50 + 20 * math.cos(angle), 30 + 20 * math.sin(angle), 13)
    pen.dot((250, 200, 60), 50, 30, 11)


def mushroom(pen: Pen) -> None:
    pen.box(PALE, 38, 48, 62, 96, 8)
    pen.pie(pen.body, (6, 8, 94, 98), 180, 360)
    for x, y, radius in ((30, 36, 7), (54, 24, 8), (74, 40, 6)):
        pen.dot(PALE, x, y, radius)


def cactus(pen: Pen) -> None:
    pen.box(pen.body, 40, 4, 60, 98, 10)
    pen.line(pen.body, 13, (50, 66), (20, 66), (20, 40))
    pen.line(pen.body, 13, (50, 54), (80, 54), (80, 26))
    for x in (46, 54):
        pen.line(pen.shade, 2, (x, 12), (x, 96))


def apple(pen: Pen) -> None:
    pen.dot(pen.body, 36, 58, 32)
    pen.dot(pen.body, 64, 58, 32)
    pen.oval(pen.body, 30, 60, 70, 97)
    pen.line(WOOD, 5, (50, 34), (54, 8))
    pen.oval((70, 160, 70), 54, 8, 82, 22)
    pen.oval(pen.light, 16, 42, 28, 62)


def person(pen: Pen) -> None:
    pen.line(INK, 9, (43, 62), (40, 96))
    pen.line(INK, 9, (57, 62), (60, 96))
    pen.line(SKIN, 7, (38, 34), (20, 58))
    pen.line(SKIN, 7, (62, 34), (80, 58))
    pen.box(pen.body, 33, 28, 67, 68, 7)
    pen.dot(SKIN, 50, 15, 13)
    pen.pie((70, 44, 30), (36, 1, 64, 28), 180, 360)


def ghost(pen: Pen) -> None:
    pen.pie(pen.body, (18, 4, 82, 72), 180, 360)
    pen.box(pen.body, 18, 36, 82, 82)
    for x in (28.6, 50, 71.4):
        pen.dot(pen.body, x, 84, 10.6)
    for x in (38, 62):
        pen.oval(INK if pen.body[0] > 40 else PALE, x - 6, 30, x + 6, 46)
    pen.oval(INK if pen.body[0] > 40 else PALE, 44, 54, 56, 64)


# Vehicles and buildings.


def _wheels(pen: Pen, y: float, radius: float, *xs: float) -> None:
    for x in xs:
        pen.dot(INK, x, y, radius)
        pen.dot(METAL, x, y, radius * 0.45)


def boat(pen: Pen) -> None:
    pen.line(WOOD, 4, (48, 6), (48, 70))
    pen.poly(pen.light, (52, 8), (52, 60), (90, 60))
    pen.poly(pen.light, (44, 16), (44, 60), (16, 60))
    pen.poly(pen.body, (4, 66), (96, 66), (80, 94), (20, 94))
    pen.line(pen.shade, 3, (8, 72), (92, 72))


def car(pen: Pen) -> None:
    pen.poly(pen.body, (24, 52), (36, 28), (68, 28), (82, 52))
    pen.poly(GLASS, (32, 50), (40, 33), (51, 33), (51, 50))
    pen.poly(GLASS, (55, 50), (55, 33), (65, 33), (74, 50))
    pen.box(pen.body, 3, 48, 97, 74, 9)
    pen.box((255, 240, 160), 3, 54, 10, 62)
    _wheels(pen, 75, 12, 25, 75)


def truck(pen: Pen) -> None:
    pen.box(pen.body, 2, 18, 62, 72, 2)
    pen.line(pen.shade, 2, (22, 20), (22, 70))
    pen.line(pen.shade, 2, (42, 20), (42, 70))
    pen.poly(pen.shade, (65, 34), (82, 34), (97, 54), (97, 74), (65, 74))
    pen.poly(GLASS, (70, 39), (81, 39), (90, 54), (70, 54))
    _wheels(pen, 77, 11, 18, 44, 82)


def bus(pen: Pen) -> None:
    pen.box(pen.body, 2, 18, 98, 78, 7)
    for x in (8, 26, 44, 62):
        pen.box(GLASS, x, 27, x + 14, 47, 2)
    pen.box(GLASS, 80, 27, 94, 70, 2)
    pen.line(pen.shade, 4, (4, 57), (76, 57))
    _wheels(pen, 79, 10, 24, 74)


def train(pen: Pen) -> None:
    pen.box(pen.body, 26, 44, 94, 72, 6)
    pen.box(pen.body, 2, 14, 36, 72)
    pen.box(GLASS, 9, 22, 28, 40)
    pen.box(pen.shade, 0, 9, 40, 17, 3)
    pen.poly(pen.shade, (76, 46), (72, 18), (92, 18), (88, 46))
    pen.poly(METAL, (92, 62), (99, 84), (78, 84), (80, 66))
    _wheels(pen, 80, 13, 18)
    _wheels(pen, 83, 10, 46, 68)


def bicycle(pen: Pen) -> None:
    for x in (22, 78):
        pen.ring(INK, x, 68, 21, 5)
        pen.dot(METAL, x, 68, 4)
    pen.line(pen.body, 6, (22, 68), (38, 38), (68, 38), (48, 68), (22, 68))
    pen.line(pen.body, 6, (48, 68), (34, 28))
    pen.line(pen.body, 6, (78, 68), (64, 24))
    pen.line(INK, 6, (26, 26), (44, 26))
    pen.line(INK, 5, (56, 20), (72, 22))


def plane(pen: Pen) -> None:
    pen.poly(pen.shade, (44, 44), (62, 10), (74, 10), (66, 46))
    pen.poly(pen.body, (2, 18), (16, 18), (28, 44), (10, 50))
    pen.box(pen.body, 6, 40, 96, 62, 11)
    pen.poly(pen.shade, (38, 54), (24, 92), (38, 92), (66, 54))
    for x in (34, 46, 58, 70):
        pen.dot(GLASS, x, 48, 3.5)
    pen.pie(GLASS, (78, 41, 96, 60), 270, 360)


def helicopter(pen: Pen) -> None:
    pen.line(METAL, 5, (4, 14), (92, 14))
    pen.line(METAL, 4, (48, 14), (48, 32))
    pen.poly(pen.shade, (58, 42), (98, 40), (98, 48), (60, 62))
    pen.ring(METAL, 93, 40, 10, 4)
    pen.oval(pen.body, 12, 28, 74, 78)
    pen.pie(GLASS, (16, 32, 66, 74), 180, 270)
    pen.line(METAL, 4, (32, 76), (30, 88))
    pen.line(METAL, 4, (56, 76), (58, 88))
    pen.line(METAL, 5, (14, 90), (72, 90))


def rocket(pen: Pen) -> None:
    pen.poly((250, 190, 40), (40, 80), (60, 80), (50, 99))
    pen.poly(pen.shade, (34, 52), (14, 84), (36, 78))
    pen.poly(pen.shade, (66, 52), (86, 84), (64, 78))
    pen.poly(pen.body, (50, 1), (66, 26), (68, 82), (32, 82), (34, 26))
    pen.dot(PALE, 50, 38, 10)
    pen.dot(GLASS, 50, 38, 7)


def balloon(pen: Pen) -> None:
    pen.line(INK, 2, (30, 50), (42, 82))
    pen.line(INK, 2, (70, 50), (58, 82))
    pen.poly(pen.body, (19, 46), (81, 46), (60, 74), (40, 74))
    pen.dot(pen.body, 50, 36, 35)
    pen.oval(pen.light, 40, 1, 60, 72)
    pen.box(WOOD, 40, 80, 60, 98, 2)


def tractor(pen: Pen) -> None:
    pen.box(pen.body, 44, 42, 96, 68, 4)
    pen.box(pen.shade, 12, 8, 56, 16, 2)
    pen.box(pen.body, 18, 14, 24, 60)
    pen.box(pen.body, 46, 14, 52, 60)
    pen.box(pen.body, 16, 46, 54, 70)
    pen.line(INK, 5, (78, 42), (78, 22))
    _wheels(pen, 68, 27, 28)
    _wheels(pen, 81, 14, 82)


def house(pen: Pen) -> None:
    pen.box(pen.shade, 68, 10, 80, 40)
    pen.poly(pen.shade, (50, 4), (98, 46), (2, 46))
    pen.box(pen.body, 12, 46, 88, 97)
    pen.box(WOOD, 42, 66, 58, 97)
    for x in (20, 66):
        pen.box(PALE, x, 56, x + 14, 72)
        pen.line(INK, 1.5, (x + 7, 56), (x + 7, 72))


def castle(pen: Pen) -> None:
    pen.box(pen.body, 24, 44, 76, 96)
    for x in (24, 38, 52, 66):
        pen.box(pen.body, x, 36, x + 9, 46)
    for x in (2, 74):
        pen.box(pen.shade, x, 26, x + 24, 96)
        pen.poly(pen.body, (x - 2, 28), (x + 12, 0), (x + 26, 28))
        pen.box(INK, x + 9, 42, x + 15, 54)
    pen.pie(INK, (38, 62, 62, 100), 180, 360)
    pen.box(INK, 38, 80, 62, 96)


def lighthouse(pen: Pen) -> None:
    pen.poly((255, 244, 150), (56, 14), (98, 4), (98, 30))
    pen.poly((255, 244, 150), (44, 14), (2, 4), (2, 30))
    pen.poly(pen.shade, (34, 10), (50, 0), (66, 10))
    pen.box((255, 236, 120), 40, 10, 60, 24)
    pen.box(INK, 34, 23, 66, 28)
    pen.poly(pen.body, (38, 28), (62, 28), (72, 97), (28, 97))
    for y in (44, 70):
        flare = (y - 28) / 7
        pen.poly(PALE, (38 - flare, y), (62 + flare, y), (64 + flare, y + 12), (36 - flare, y + 12))


def windmill(pen: Pen) -> None:
    pen.poly(pen.body, (38, 36), (62, 36), (72, 98), (28, 98))
    pen.poly(pen.shade, (34, 38), (50, 20), (66, 38))
    pen.box(WOOD, 44, 78, 56, 98)
    for step in range(4):
        angle = math.pi / 4 + step * math.pi / 2
        tip = (50 + 46 * math.cos(angle), 38 + 46 * math.sin(angle))
        side = (-6 * math.sin(angle), 6 * math.cos(angle))
        pen.line(INK, 2.5, (50, 38), tip)
        pen.poly(
            PALE,
            tip,
            (tip[0] + 2 * side[0], tip[1] + 2 * side[1]),
            (50 + 10 * math.cos(angle) + 2 * side[0], 38 + 10 * math.sin(angle) + 2 * side[1]),
            (50 + 10 * math.cos(angle), 38 + 10 * math.sin(angle)),
        )
    pen.dot(INK, 50, 38, 4)


def tent(pen: Pen) -> None:
    pen.poly(pen.body, (50, 14), (98, 92), (2, 92))
    pen.poly(INK, (50, 34), (66, 92), (34, 92))
    pen.poly(pen.light, (50, 30), (34, 92), (24, 92))
    pen.line(WOOD, 3, (50, 14), (54, 6))
    pen.line(WOOD, 3, (50, 14), (46, 6))


def bridge(pen: Pen) -> None:
    pen.box(pen.shade, 18, 12, 26, 92)
    pen.box(pen.shade, 74, 12, 82, 92)
    pen.arc(pen.body, 4, (22, -36, 78, 56), 0, 180)
    pen.line(pen.body, 4, (1, 52), (22, 14))
    pen.line(pen.body, 4, (99, 52), (78, 14))
    for x in (34, 42, 50, 58, 66):
        pen.line(pen.body, 2, (x, 48), (x, 62))
    pen.box(pen.body, 0, 60, 100, 70)


# Everyday objects.


def kite(pen: Pen) -> None:
    pen.line(INK, 2, (46, 64), (60, 78), (50, 86), (66, 99))
    pen.poly(pen.light, (60, 78), (68, 70), (70, 80))
    pen.poly(pen.light, (50, 88), (40, 82), (40, 94))
    pen.poly(pen.body, (50, 2), (82, 32), (46, 68), (16, 28))
    pen.poly(pen.shade, (50, 2), (82, 32), (48, 30))
    pen.poly(pen.shade, (46, 68), (16, 28), (48, 30))


def clock(pen: Pen) -> None:
    pen.dot(pen.body, 22, 14, 12)
    pen.dot(pen.body, 78, 14, 12)
    pen.line(pen.shade, 7, (28, 84), (18, 97))
    pen.line(pen.shade, 7, (72, 84), (82, 97))
    pen.dot(pen.body, 50, 54, 42)
    pen.dot(PALE, 50, 54, 31)
    for x, y in ((50, 28), (50, 80), (24, 54), (76, 54)):
        pen.dot(INK, x, y, 3)
    pen.line(INK, 4, (50, 54), (50, 34))
    pen.line(INK, 4, (50, 54), (66, 60))


def umbrella(pen: Pen) -> None:
    pen.line(WOOD, 5, (50, 10), (50, 86))
    pen.arc(WOOD, 5, (50, 76, 70, 97), 0, 180)
    pen.pie(pen.body, (2, 6, 98, 98), 180, 360)
    for x in (2, 34, 66):
        pen.pie(pen.shade, (x, 42, x + 32, 62), 180, 360)
    pen.line(INK, 3, (50, 2), (50, 8))


def cup(pen: Pen) -> None:
    pen.ring(pen.shade, 72, 54, 22, 8)
    pen.poly(pen.body, (10, 26), (74, 26), (68, 92), (18, 92))
    pen.oval(pen.shade, 10, 19, 74, 33)
    pen.oval((90, 54, 30), 16, 21, 68, 31)


def bottle(pen: Pen) -> None:
    pen.box(WOOD, 43, 0, 57, 10)
    pen.box(pen.body, 42, 8, 58, 40)
    pen.box(pen.body, 28, 32, 72, 99, 14)
    pen.box(PALE, 28, 54, 72, 80)


def chair(pen: Pen) -> None:
    pen.box(pen.shade, 22, 4, 30, 97)
    pen.box(pen.body, 22, 4, 32, 56)
    for y in (8, 24, 40):
        pen.box(pen.body, 24, y, 46, y + 6)
    pen.box(pen.body, 40, 4, 48, 56)
    pen.poly(pen.body, (20, 54), (80, 54), (86, 64), (20, 64))
    pen.box(pen.shade, 44, 64, 50, 86)
    pen.box(pen.shade, 76, 64, 84, 97)


def table(pen: Pen) -> None:
    pen.box(pen.shade, 10, 36, 19, 90)
    pen.box(pen.shade, 81, 36, 90, 90)
    pen.box(pen.shade, 28, 36, 34, 76)
    pen.box(pen.shade, 66, 36, 72, 76)
    pen.box(pen.body, 1, 26, 99, 40, 3)


def lamp(pen: Pen) -> None:
    pen.line(METAL, 6, (50, 46), (50, 92))
    pen.oval(METAL, 28, 86, 72, 99)
    pen.poly((255, 244, 170), (26, 50), (74, 50), (66, 58), (34, 58))
    pen.poly(pen.body, (34, 4), (66, 4), (88, 50), (12, 50))


def key(pen: Pen) -> None:
    pen.line(pen.body, 9, (40, 46), (96, 46))
    pen.box(pen.body, 72, 46, 80, 66)
    pen.box(pen.body, 88, 46, 97, 72)
    pen.dot(pen.body, 24, 46, 22)
    pen.erase(20, 46, 9)


def book(pen: Pen) -> None:
    pen.poly(pen.body, (50, 28), (2, 18), (2, 82), (50, 92))
    pen.poly(pen.shade, (50, 28), (98, 18), (98, 82), (50, 92))
    pen.poly(PALE, (50, 26), (8, 14), (8, 72), (50, 84))
    pen.poly((222, 222, 216), (50, 26), (92, 14), (92, 72), (50, 84))
    for y in (30, 42, 54):
        pen.line(METAL, 2, (16, y - 2), (42, y + 5))
        pen.line(METAL, 2, (58, y + 5), (84, y - 2))


def guitar(pen: Pen) -> None:
    pen.line(WOOD, 8, (46, 50), (86, 12))
    pen.poly(INK, (82, 6), (92, 0), (99, 8), (92, 18))
    pen.dot(pen.body, 28, 70, 26)
    pen.dot(pen.body, 50, 50, 18)
    pen.dot(INK, 40, 58, 8)
    pen.line(INK, 4, (16, 72), (26, 84))


def drum(pen: Pen) -> None:
    pen.line(WOOD, 4, (20, 4), (46, 28))
    pen.line(WOOD, 4, (84, 2), (58, 28))
    pen.box(pen.body, 12, 38, 88, 84)
    pen.oval(pen.body, 12, 70, 88, 98)
    pen.line(PALE, 3, (14, 44), (32, 88), (50, 50), (68, 88), (86, 44))
    pen.oval(pen.shade, 10, 22, 90, 54)
    pen.oval(PALE, 14, 25, 86, 50)


def bell(pen: Pen) -> None:
    pen.ring(pen.shade, 50, 10, 9, 4)
    pen.dot(pen.shade, 50, 88, 9)
    pen.pie(pen.body, (24, 14, 76, 90), 180, 360)
    pen.poly(pen.body, (24, 50), (76, 50), (82, 74), (18, 74))
    pen.box(pen.shade, 8, 72, 92, 82, 5)


def hat(pen: Pen) -> None:
    pen.oval(pen.body, 1, 66, 99, 90)
    pen.box(pen.body, 26, 14, 74, 80)
    pen.oval(pen.shade, 26, 8, 74, 22)
    pen.box(PALE, 26, 60, 74, 70)


def ball(pen: Pen) -> None:
    pen.dot(pen.body, 50, 52, 44)
    pen.pie(PALE, (6, 8, 94, 96), 240, 300)
    pen.pie(PALE, (6, 8, 94, 96), 0, 60)
    pen.pie(PALE, (6, 8, 94, 96), 120, 180)
    pen.dot(pen.body, 50, 52, 10)


def star(pen: Pen) -> None:
    pen.poly(pen.body, *star_points(50, 54, 50, 20, 5))


def heart(pen: Pen) -> None:
    pen.dot(pen.body, 28, 32, 25)
    pen.dot(pen.body, 72, 32, 25)
    pen.poly(pen.body, (6, 44), (94, 44), (50, 97))
    pen.oval(pen.body, 24, 26, 76, 60)


def crown(pen: Pen) -> None:
    pen.poly(pen.body, (4, 26), (28, 54), (50, 12), (72, 54), (96, 26), (88, 88), (12, 88))
    for x, y in ((4, 24), (50, 10), (96, 24)):
        pen.dot(pen.shade, max(6, min(94, x)), y, 6)
    pen.box(pen.shade, 12, 76, 88, 88)
    for x in (28, 50, 72):
        pen.dot(PALE, x, 68, 5)


def flag(pen: Pen) -> None:
    pen.line(METAL, 5, (14, 6), (14, 98))
    pen.poly(pen.body, (16, 8), (52, 14), (96, 6), (96, 52), (52, 60), (16, 54))
    pen.line(pen.shade, 3, (52, 15), (52, 59))


def gift(pen: Pen) -> None:
    ribbon = (250, 206, 60) if pen.body[2] > 40 or pen.body[0] < 200 else (60, 90, 220)
    pen.ring(ribbon, 36, 16, 14, 6)
    pen.ring(ribbon, 64, 16, 14, 6)
    pen.box(pen.body, 12, 44, 88, 97)
    pen.box(pen.shade, 6, 28, 94, 46)
    pen.box(ribbon, 43, 28, 57, 97)


def candle(pen: Pen) -> None:
    pen.oval((255, 150, 30), 40, 2, 60, 32)
    pen.oval((255, 236, 120), 45, 12, 55, 30)
    pen.line(INK, 3, (50, 30), (50, 38))
    pen.box(pen.body, 38, 36, 62, 86, 3)
    pen.oval(METAL, 16, 80, 84, 98)
    pen.ring(METAL, 88, 86, 10, 4)


def ladder(pen: Pen) -> None:
    pen.line(pen.body, 7, (30, 4), (22, 96))
    pen.line(pen.body, 7, (70, 4), (78, 96))
    for y in (18, 36, 54, 72, 88):
        pen.line(pen.shade, 6, (29 - y / 14, y), (71 + y / 14, y))


def anchor(pen: Pen) -> None:
    pen.ring(pen.body, 50, 14, 13, 6)
    pen.line(pen.body, 9, (50, 26), (50, 90))
    pen.line(pen.body, 8, (28, 38), (72, 38))
    pen.arc(pen.body, 9, (12, 22, 88, 96), 10, 170)
    pen.poly(pen.body, (4, 74), (10, 48), (28, 66))
    pen.poly(pen.body, (96, 74), (90, 48), (72, 66))


def scissors(pen: Pen) -> None:
    pen.poly(METAL, (46, 58), (66, 2), (58, 62))
    pen.poly(METAL, (54, 58), (34, 2), (42, 62))
    pen.line(pen.body, 8, (44, 58), (34, 70))
    pen.line(pen.body, 8, (56, 58), (66, 70))
    pen.ring(pen.body, 26, 80, 18, 8)
    pen.ring(pen.body, 74, 80, 18, 8)


def shoe(pen: Pen) -> None:
    pen.poly(pen.body, (6, 28), (36, 28), (52, 54), (84, 60), (96, 76), (6, 76))
    pen.box(INK, 4, 74, 98, 84, 4)
    for x, y in ((42, 38), (50, 48), (60, 54)):
        pen.line(PALE, 3, (x - 12, y + 6), (x, y))


def robot(pen: Pen) -> None:
    pen.line(METAL, 3, (50, 12), (50, 2))
    pen.box(pen.shade, 32, 84, 44, 99)
    pen.box(pen.shade, 56, 84, 68, 99)
    pen.line(METAL, 7, (28, 52), (10, 56), (10, 74))
    pen.line(METAL, 7, (72, 52), (90, 56), (90, 74))
    pen.box(pen.body, 26, 44, 74, 86, 4)
    pen.box(pen.body, 28, 10, 72, 42, 4)
    for x in (40, 60):
        pen.dot((250, 240, 120), x, 24, 6)
        pen.dot(INK, x, 24, 2.5)
    pen.box(INK, 38, 34, 62, 38)
    pen.box(PALE, 36, 54, 64, 70)


def cake(pen: Pen) -> None:
    for x in (30, 50, 70):
        pen.box(PALE, x - 2, 16, x + 2, 36)
        pen.oval((255, 160, 30), x - 3, 6, x + 3, 17)
    pen.box(pen.body, 24, 36, 76, 62, 4)
    pen.box(pen.body, 8, 60, 92, 92, 4)
    for x in (16, 32, 48, 64, 80):
        pen.pie(PALE, (x - 9, 50, x + 9, 74), 0, 180)
    pen.box(METAL, 1, 90, 99, 96, 3)


def envelope(pen: Pen) -> None:
    pen.box(pen.body, 2, 20, 98, 82, 2)
    pen.poly(pen.shade, (2, 20), (98, 20), (50, 56))
    pen.line(pen.light, 2.5, (4, 80), (38, 48))
    pen.line(pen.light, 2.5, (96, 80), (62, 48))


# fmt: off
DRAWINGS = {drawing.__name__: drawing for drawing in (
    fish, bird, cat, dog, horse, elephant, snake, butterfly, snail, turtle, rabbit, duck, spider, tree, flower,
    mushroom, cactus, apple, person, ghost, boat, car, truck, bus, train, bicycle, plane, helicopter, rocket,
    balloon, tractor, house, castle, lighthouse, windmill, tent, bridge, kite, clock, umbrella, cup, bottle,
    chair, table, lamp, key, book, guitar, drum, bell, hat, ball, star, heart, crown, flag, gift, candle, ladder,
    anchor, scissors, shoe, robot, cake, envelope,
)}
# fmt: on


# The eight places, by day and by night.

DAY_SKY: tuple[Rgb, Rgb] = ((112, 176, 232), (206, 230, 244))
NIGHT_SKY: tuple[Rgb, Rgb] = ((10, 14, 40), (36, 44, 84))
NIGHT_TINT = np.array([0.34, 0.36, 0.48])


class Ground:
    """A canvas whose sides run from 0 to 1; every fill is darkened by night and varied a little at random."""

    def __init__(self, night: bool, width_px: int, height_px: int, chance: Random) -> None:
        self.night, self.width, self.height, self.chance = night, width_px, height_px, chance
        self.tone = chance.uniform(0.92, 1.06)
        self.image = Image.fromarray(_gradient(*(NIGHT_SKY if night else DAY_SKY), width_px, height_px, self.tone))
        self.draw = ImageDraw.Draw(self.image)

    def fill(self, rgb: Rgb) -> Rgb:
        lit = np.array(rgb) * self.tone * (NIGHT_TINT if self.night else 1.0)
        red, green, blue = (int(min(255, value)) for value in lit)
        return red, green, blue

    def poly(self, rgb: Rgb, *corners: tuple[float, float]) -> None:
        self.draw.polygon([(x * self.width, y * self.height) for x, y in corners], fill=self.fill(rgb))

    def box(self, rgb: Rgb, left: float, top: float, right: float, bottom: float, *, lit: bool = False) -> None:
        corners = (left * self.width, top * self.height, right * self.width, bottom * self.height)
        self.draw.rectangle(corners, fill=rgb if lit else self.fill(rgb))

    def oval(self, rgb: Rgb, left: float, top: float, right: float, bottom: float, *, lit: bool = False) -> None:
        corners = (left * self.width, top * self.height, right * self.width, bottom * self.height)
        self.draw.ellipse(corners, fill=rgb if lit else self.fill(rgb))

    def ridge(self, rgb: Rgb, base: float, rise: float, waves: float) -> None:
        phase = self.chance.uniform(0, 6.3)
        line = [(x / 40, base + rise * math.sin(phase + waves * x / 40 * 6.283)) for x in range(41)]
        self.poly(rgb, *line, (1, 1), (0, 1))


def _gradient(top: Rgb, bottom: Rgb, width_px: int, height_px: int, tone: float) -> NDArray[np.uint8]:
    share = np.linspace(0, 1, height_px)[:, None]
    column = (np.array(top) * (1 - share) + np.array(bottom) * share) * tone
    return np.repeat(np.clip(column, 0, 255).astype(np.uint8)[:, None], width_px, axis=1)


def _sky(ground: Ground, clouds: bool = True) -> None:
    chance = ground.chance
    x = chance.uniform(0.08, 0.92)
    if ground.night:
        for _ in range(26):
            left, top = chance.random(), chance.random() * 0.5
            ground.oval((225, 225, 240), left, top, left + 0.004, top + 0.007, lit=True)
        ground.oval((240, 238, 214), x, 0.06, x + 0.06, 0.167, lit=True)
        return
    ground.oval((255, 238, 150), x, 0.05, x + 0.07, 0.175)
    for _ in range(chance.randint(1, 3) if clouds else 0):
        left, top = chance.uniform(-0.05, 0.9), chance.uniform(0.04, 0.3)
        for step in range(3):
            x, y = left + step * 0.04, top - 0.02 * (step % 2)
            ground.oval((240, 245, 250), x, y, x + 0.08, top + 0.08)


def _sea(ground: Ground) -> None:
    _sky(ground)
    level = ground.chance.uniform(0.46, 0.56)
    ground.box((36, 116, 176), 0, level, 1, 1)
    ground.box((28, 96, 156), 0, level, 1, level + 0.06)
    for row in range(7):
        y = level + 0.08 + row * 0.065
        shift = ground.chance.random() * 0.2
        for step in range(-1, 7):
            x = step * 0.19 + shift
            ground.poly((126, 190, 222), (x, y), (x + 0.04, y - 0.018), (x + 0.08, y), (x + 0.04, y - 0.006))


def _desert(ground: Ground) -> None:
    _sky(ground, clouds=False)
    ground.ridge((232, 192, 120), 0.56, 0.05, ground.chance.uniform(0.8, 1.6))
    ground.ridge((222, 174, 98), 0.66, 0.05, ground.chance.uniform(0.6, 1.2))
    ground.ridge((210, 158, 84), 0.82, 0.05, ground.chance.uniform(0.5, 1.0))


def _pine(ground: Ground, rgb: Rgb, x: float, base: float, height: float) -> None:
    ground.box((84, 58, 36), x - 0.006, base - 0.02, x + 0.006, base + 0.04)
    for step in range(3):
        top = base - height * (1 - step * 0.25)
        half = 0.02 + 0.018 * step
        ground.poly(rgb, (x, top), (x + half, top + height * 0.42), (x - half, top + height * 0.42))


def _snow(ground: Ground) -> None:
    _sky(ground)
    chance = ground.chance
    ground.ridge((214, 226, 240), 0.54, 0.05, chance.uniform(0.7, 1.3))
    for _ in range(5):
        _pine(ground, (150, 176, 186), chance.random(), chance.uniform(0.56, 0.62), chance.uniform(0.14, 0.2))
    ground.ridge((236, 242, 250), 0.68, 0.04, chance.uniform(0.5, 1.0))
    for _ in range(70):
        x, y = chance.random(), chance.random()
        ground.oval((250, 250, 255), x, y, x + 0.009, y + 0.016)


def _forest(ground: Ground) -> None:
    chance = ground.chance
    ground.box((54, 104, 64), 0, 0.26, 1, 1)
    for column in sorted(range(16), key=lambda _: chance.random()):
        green = (26, 82 + chance.randint(-12, 12), 46)
        _pine(ground, green, (column + chance.random()) / 16, 0.62, chance.uniform(0.46, 0.66))
    ground.box((62, 84, 44), 0, 0.64, 1, 1)
    for _ in range(24):
        x, y = chance.random(), chance.uniform(0.68, 0.98)
        ground.poly((40, 64, 34), (x, y), (x + 0.008, y - 0.04), (x + 0.016, y))
    if ground.night:
        _sky(ground)


def _city(ground: Ground) -> None:
    _sky(ground)
    chance = ground.chance
    x: float = -0.02
    while x < 1:
        width, top = chance.uniform(0.08, 0.14), chance.uniform(0.1, 0.42)
        grey = chance.randint(96, 160)
        ground.box((grey, grey, grey + 12), x, top, x + width, 0.76)
        for column in range(3):
            for row in range(int((0.7 - top) / 0.075)):
                left, upper = x + width * (0.14 + 0.28 * column), top + 0.03 + row * 0.075
                glow = ground.night and chance.random() < 0.5
                ground.box(
                    (250, 220, 130) if glow else (70, 84, 104),
                    left,
                    upper,
                    left + width * 0.16,
                    upper + 0.035,
                    lit=glow,
                )
        x += width + 0.006
    ground.box((150, 150, 150), 0, 0.74, 1, 0.78)
    ground.box((74, 74, 80), 0, 0.78, 1, 1)
    for step in range(6):
        ground.box((220, 220, 210), step * 0.18 + 0.03, 0.885, step * 0.18 + 0.12, 0.9)


def _mountains(ground: Ground) -> None:
    _sky(ground)
    chance = ground.chance
    for base, rgb in ((0.7, (146, 138, 150)), (0.78, (112, 102, 108))):
        for step in range(5):
            x, top, half = (step + chance.random()) / 5, chance.uniform(0.16, 0.4), chance.uniform(0.16, 0.26)
            ground.poly(rgb, (x, top), (x + half, base), (x - half, base))
            ground.poly(
                (238, 238, 244),
                (x, top),
                (x + half * 0.2, top + (base - top) * 0.2),
                (x, top + (base - top) * 0.14),
                (x - half * 0.2, top + (base - top) * 0.2),
            )
    ground.ridge((122, 118, 100), 0.74, 0.02, chance.uniform(1, 2))
    for _ in range(14):
        x, y = chance.random(), chance.uniform(0.8, 0.97)
        ground.poly((92, 88, 78), (x, y), (x + 0.012, y - 0.03), (x + 0.03, y - 0.02), (x + 0.036, y))


def _meadow(ground: Ground) -> None:
    _sky(ground)
    chance = ground.chance
    ground.ridge((142, 194, 96), 0.54, 0.06, chance.uniform(0.6, 1.2))
    ground.ridge((116, 180, 72), 0.66, 0.04, chance.uniform(0.5, 1.0))
    for _ in range(40):
        x, y = chance.random(), chance.uniform(0.72, 0.99)
        ground.poly((84, 150, 52), (x, y), (x + 0.004, y - 0.04), (x + 0.008, y))
    for _ in range(12):
        x, y = chance.random(), chance.uniform(0.72, 0.97)
        ground.oval(chance.choice(((250, 250, 250), (250, 220, 90))), x, y, x + 0.009, y + 0.016)


def _room(ground: Ground) -> None:
    chance = ground.chance
    wall = chance.choice(((222, 206, 178), (200, 212, 200), (214, 196, 204)))
    ground.box(wall, 0, 0, 1, 0.7)
    for step in range(12):
        ground.box((wall[0] - 10, wall[1] - 10, wall[2] - 10), step * 0.09, 0, step * 0.09 + 0.02, 0.66)
    ground.box((240, 236, 228), 0, 0.66, 1, 0.7)
    ground.box((166, 118, 76), 0, 0.7, 1, 1)
    for step in range(4):
        ground.box((140, 96, 60), 0, 0.75 + step * 0.07, 1, 0.756 + step * 0.07)
    left = chance.choice((0.08, 0.4, 0.7))
    ground.box((246, 244, 238), left, 0.1, left + 0.2, 0.48)
    sky = NIGHT_SKY[1] if ground.night else DAY_SKY[0]
    for x in (left + 0.012, left + 0.106):
        ground.box(sky, x, 0.125, x + 0.082, 0.455, lit=True)
    ground.oval((156, 84, 84), 0.14, 0.8, 0.86, 0.97)


_PLACES = {
    "sea": _sea,
    "desert": _desert,
    "snow": _snow,
    "forest": _forest,
    "city": _city,
    "mountains": _mountains,
    "meadow": _meadow,
    "room": _room,
}


def draw_place(place: str, night: bool, width_px: int, height_px: int, chance: Random) -> Image.Image:
    ground = Ground(night, width_px, height_px, chance)
    _PLACES[place](ground)
    return ground.image
