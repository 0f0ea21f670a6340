"""Things of the sketch world, drawn: those of `things.txt`, each with an outline."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
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
        """Return the paint of a name, of the thing's own colour, or of "red,green,blue"."""
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
    """Return the shapes of each thing by name: the method of `Pen`, its paint and its numbers."""
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
