"""Everything that is drawn in the sketch world: the things of `things.txt`, with an outline, and the eight places."""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

Rgb = tuple[int, int, int]
Paint = tuple[int, ...]

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

PAINTS: dict[str, Paint] = {
    "ink": (30, 30, 34),
    "pale": (238, 238, 232),
    "glass": (168, 214, 232),
    "metal": (150, 156, 164),
    "wood": (150, 106, 62),
    "skin": (236, 188, 150),
    "hole": (0, 0, 0, 0),
}
FLYING = frozenset({"bird", "butterfly", "plane", "helicopter", "rocket", "balloon", "kite", "star", "heart", "ghost"})
MASTER_SIDE_PX = 192


@lru_cache(maxsize=1024)
def master(thing: str, colour: str) -> Image.Image:
    """Draw a thing in a colour: RGBA, `MASTER_SIDE_PX` square, with a thin outline that keeps it off any background."""
    pen = Pen(colour, 2 * MASTER_SIDE_PX)
    for shape, paint, numbers in THINGS[thing]:
        getattr(pen, shape)(pen.paint(paint), *numbers)
    inner = pen.sheet.resize((MASTER_SIDE_PX - 8, MASTER_SIDE_PX - 8), Image.Resampling.BOX)
    picture = Image.new("RGBA", (MASTER_SIDE_PX, MASTER_SIDE_PX))
    picture.paste(inner, (4, 4))
    edge = picture.getchannel("A").filter(ImageFilter.MaxFilter(5))
    rim = Image.new("RGBA", picture.size, (150, 150, 156) if colour == "black" else (28, 28, 32))
    rim.putalpha(edge)
    return Image.alpha_composite(rim, picture)


def sprite(thing: str, colour: str, side_px: int, *, night: bool, mirrored: bool) -> Image.Image:
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
    """A pen for a square sheet whose sides run from 0 to 100, y down; `own` are the paints of what is drawn."""

    def __init__(self, colour: str, side_px: int) -> None:
        self.sheet = Image.new("RGBA", (side_px, side_px))
        body, shade, light = paint_of(colour)
        eye = PAINTS["ink" if body[0] > 40 else "pale"]
        ribbon = (250, 206, 60) if body[2] > 40 or body[0] < 200 else (60, 90, 220)
        self.own: dict[str, Paint] = {"body": body, "shade": shade, "light": light, "eye": eye, "ribbon": ribbon}
        self._draw = ImageDraw.Draw(self.sheet)
        self._scale = side_px / 100.0

    def paint(self, name: str) -> Paint:
        """The paint of a name, of the thing's own colour, or of "red,green,blue"."""
        return self.own.get(name) or PAINTS.get(name) or tuple(map(int, name.split(",")))

    def poly(self, fill: Paint, *xy: float) -> None:
        self._draw.polygon(self._px(*xy), fill=fill)

    def box(self, fill: Paint, left: float, top: float, right: float, bottom: float, round_by: float = 0) -> None:
        """Fill a rectangle, its corners rounded by a radius."""
        self._draw.rounded_rectangle(self._px(left, top, right, bottom), radius=round_by * self._scale, fill=fill)

    def oval(self, fill: Paint, left: float, top: float, right: float, bottom: float) -> None:
        self._draw.ellipse(self._px(left, top, right, bottom), fill=fill)

    def dot(self, fill: Paint, x: float, y: float, radius: float) -> None:
        self.oval(fill, x - radius, y - radius, x + radius, y + radius)

    def line(self, fill: Paint, width: float, *xy: float) -> None:
        """Draw a line through points, with round ends and joints."""
        self._draw.line(self._px(*xy), fill=fill, width=self._width_px(width), joint="curve")
        for x, y in zip(xy[::2], xy[1::2], strict=True):
            self.dot(fill, x, y, width / 2)

    def ring(self, fill: Paint, x: float, y: float, radius: float, width: float) -> None:
        """Draw a circle's outline; `radius` is the outer one."""
        box = self._px(x - radius, y - radius, x + radius, y + radius)
        self._draw.ellipse(box, outline=fill, width=self._width_px(width))

    def arc(self, fill: Paint, width: float, *box_and_degrees: float) -> None:
        """Draw part of an ellipse's outline, clockwise from three o'clock, between two angles."""
        *box, start_deg, end_deg = box_and_degrees
        self._draw.arc(self._px(*box), start_deg, end_deg, fill=fill, width=self._width_px(width))

    def pie(self, fill: Paint, *box_and_degrees: float) -> None:
        """Fill a slice of an ellipse, clockwise from three o'clock, between two angles."""
        *box, start_deg, end_deg = box_and_degrees
        self._draw.pieslice(self._px(*box), start_deg, end_deg, fill=fill)

    def _px(self, *lengths: float) -> list[float]:
        return [length * self._scale for length in lengths]

    def _width_px(self, width: float) -> int:
        return max(1, round(width * self._scale))


def _read_things() -> dict[str, list[tuple[str, str, list[float]]]]:
    """The shapes of each thing by name: the method of `Pen`, its paint and its numbers."""
    things: dict[str, list[tuple[str, str, list[float]]]] = {}
    shapes: list[tuple[str, str, list[float]]] = []
    for line in Path(__file__).with_name("things.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith(" "):
            shape, paint, *numbers = line.split()
            shapes.append((shape, paint, [float(each) for each in numbers]))
        elif line and not line.startswith("#"):
            shapes = things.setdefault(line, [])
    return things


THINGS = _read_things()


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
