"""All things of the sketch world by name, drawn with an outline, ready to be pasted."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from PIL import Image, ImageFilter

from jobs.synthetic.world.canvas import Pen, paint_of
from jobs.synthetic.world.drawings_living import LIVING
from jobs.synthetic.world.drawings_manmade import MADE
from jobs.synthetic.world.drawings_objects import OBJECTS

DRAWINGS = {drawing.__name__: drawing for drawing in (*LIVING, *MADE, *OBJECTS)}
FLYING = frozenset({"bird", "butterfly", "plane", "helicopter", "rocket", "balloon", "kite", "star", "heart", "ghost"})
MASTER_SIDE_PX = 192


@lru_cache(maxsize=1024)
def master(thing: str, colour: str) -> Image.Image:
    """Draw a thing in a colour: RGBA, `MASTER_SIDE_PX` square, with a thin outline that keeps it off any background."""
    pen = Pen(paint_of(colour), 2 * MASTER_SIDE_PX)
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
