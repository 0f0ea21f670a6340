"""Pen and paints with which every thing of the sketch world is drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image, ImageDraw

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


@dataclass(frozen=True, slots=True)
class Paint:
    """Colours of one thing: its body colour, a darker and a lighter one."""

    body: Rgb
    shade: Rgb
    light: Rgb


def paint_of(colour: str) -> Paint:
    """Mix the paint of a colour of the vocabulary; black is shaded lighter, because it cannot get darker."""
    red, green, blue = COLOUR_RGB[colour]
    if colour == "black":
        return Paint((red, green, blue), (62, 62, 68), (92, 92, 98))
    shade = (int(red * 0.72), int(green * 0.72), int(blue * 0.72))
    light = (red + (255 - red) // 3, green + (255 - green) // 3, blue + (255 - blue) // 3)
    return Paint((red, green, blue), shade, light)


class Pen:
    """A pen for a square sheet whose sides run from 0 to 100, y down.

    Attributes `body`, `shade` and `light` are the paint of the thing being drawn.
    """

    def __init__(self, paint: Paint, side_px: int) -> None:
        self.sheet = Image.new("RGBA", (side_px, side_px))
        self.body, self.shade, self.light = paint.body, paint.shade, paint.light
        self._draw = ImageDraw.Draw(self.sheet)
        self._scale = side_px / 100.0

    def poly(self, fill: Rgb, *corners: Point) -> None:
        """Fill a polygon."""
        self._draw.polygon([(x * self._scale, y * self._scale) for x, y in corners], fill=fill)

    def box(self, fill: Rgb, left: float, top: float, right: float, bottom: float, round_by: float = 0) -> None:
        """Fill a rectangle, its corners rounded by a radius."""
        box = [value * self._scale for value in (left, top, right, bottom)]
        self._draw.rounded_rectangle(box, radius=round_by * self._scale, fill=fill)

    def oval(self, fill: Rgb, left: float, top: float, right: float, bottom: float) -> None:
        """Fill an ellipse in a box."""
        self._draw.ellipse([value * self._scale for value in (left, top, right, bottom)], fill=fill)

    def dot(self, fill: Rgb, x: float, y: float, radius: float) -> None:
        """Fill a circle."""
        self.oval(fill, x - radius, y - radius, x + radius, y + radius)

    def line(self, fill: Rgb, width: float, *points: Point) -> None:
        """Draw a line through points, with round ends and joints."""
        scaled = [(x * self._scale, y * self._scale) for x, y in points]
        self._draw.line(scaled, fill=fill, width=max(1, round(width * self._scale)), joint="curve")
        for x, y in points:
            self.dot(fill, x, y, width / 2)

    def ring(self, fill: Rgb, x: float, y: float, radius: float, width: float) -> None:
        """Draw a circle's outline; `radius` is the outer one."""
        box = [value * self._scale for value in (x - radius, y - radius, x + radius, y + radius)]
        self._draw.ellipse(box, outline=fill, width=max(1, round(width * self._scale)))

    def arc(self, fill: Rgb, width: float, box: Sequence[float], start_deg: float, end_deg: float) -> None:
        """Draw part of an ellipse's outline, clockwise from three o'clock."""
        scaled = [value * self._scale for value in box]
        self._draw.arc(scaled, start_deg, end_deg, fill=fill, width=max(1, round(width * self._scale)))

    def pie(self, fill: Rgb, box: Sequence[float], start_deg: float, end_deg: float) -> None:
        """Fill a slice of an ellipse, clockwise from three o'clock."""
        self._draw.pieslice([value * self._scale for value in box], start_deg, end_deg, fill=fill)

    def erase(self, x: float, y: float, radius: float) -> None:
        """Erase a round hole."""
        box = [value * self._scale for value in (x - radius, y - radius, x + radius, y + radius)]
        self._draw.ellipse(box, fill=(0, 0, 0, 0))


def star_points(x: float, y: float, outer: float, inner: float, points: int) -> list[Point]:
    """Compute the corners of a star, its first point up."""
    corners = []
    for step in range(2 * points):
        radius = inner if step % 2 else outer
        angle = math.pi * step / points - math.pi / 2
        corners.append((x + radius * math.cos(angle), y + radius * math.sin(angle)))
    return corners
