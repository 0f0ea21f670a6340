"""The eight places of the sketch world, drawn by day and by night."""

from __future__ import annotations

import math
from random import Random

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from tests.world.sketch.things import Rgb

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
