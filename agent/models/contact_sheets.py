"""Contact sheets: several pictures as numbered tiles of one, for servers that take fewer pictures than a request has.

The rule: the pictures are dealt out in their order to as many sheets as the server takes pictures, at most
`MAX_TILES` on each. A request with more has to be made again with fewer frames (`TooManyPictures`): its schema and its
words are about what is shown, or a model would describe pictures that it never got. A sheet stands
where its first picture stood, after a text that says which tile is which frame; each tile has its number and label
drawn above it.
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from kinodex.agent.prompts.messages import Message
from kinodex.agent.prompts.parts import JPEG_QUALITY, Part, data_url
from kinodex.index.pictures import stored_picture

if TYPE_CHECKING:
    pass

MAX_TILES = 16
SHEET_SIDE_PX = 1536
"""The longest side of a sheet: OpenAI's and Qwen's models read about that much."""
STRIP_PX, GAP_PX = 24, 4
FONT_PX = 16
LABEL_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class FittedMessages:
    """Messages with no more pictures than a server takes, and the number of sheets in them."""

    messages: list[Message]
    sheets: int = 0


class TooManyPictures(Exception):
    """A request has more pictures than find room on the sheets that a server takes."""


@dataclass(frozen=True, slots=True)
class _Picture:
    """A picture of chat messages: the places of its message and part, its label before it ("": none), its contents."""

    message: int
    part: int
    label: str
    image: dict[str, str]


def _pictures(messages: Sequence[Message]) -> list[_Picture]:
    contents: list[Any] = [message["content"] for message in messages]
    return [
        _Picture(number, at, _label(content, at), part["image_url"])
        for number, content in enumerate(contents)
        if isinstance(content, list)
        for at, part in enumerate(content)
        if "image_url" in part
    ]


def _label(content: Sequence[Mapping[str, Any]], at: int) -> str:
    """Return the text right before a picture, if it is a label: one short line."""
    text = str(content[at - 1].get("text", "")) if at else ""
    return text if 0 < len(text) <= LABEL_CHARACTERS and "\n" not in text else ""


def count_pictures(messages: Sequence[Message]) -> int:
    return len(_pictures(messages))


def fit_pictures(messages: Sequence[Message], most: int) -> FittedMessages:
    """Put the pictures of messages on at most `most` sheets, if they are more; `most` is at least 1.

    Raises `TooManyPictures`.
    """
    pictures = _pictures(messages)
    if len(pictures) <= most:
        return FittedMessages(list(messages))
    if len(pictures) > most * MAX_TILES:
        raise TooManyPictures(f"{len(pictures)} pictures do not fit on {most} sheets")
    cuts = [round(number * len(pictures) / most) for number in range(most + 1)]
    groups = [pictures[start:end] for start, end in pairwise(cuts) if end > start]
    placed: dict[tuple[int, int], list[Part]] = {(each.message, each.part): [] for each in pictures}
    placed |= {(each.message, each.part - 1): [] for each in pictures if each.label}
    for number, group in enumerate(groups, start=1):
        title = f"sheet {number} of {len(groups)}" if len(groups) > 1 else "one picture"
        placed[group[0].message, group[0].part] = _sheet_parts(group, title)
    fitted = []
    for number, message in enumerate(messages):
        content: Any = message["content"]
        if isinstance(content, list):
            parts = [new for at, part in enumerate(content) for new in placed.get((number, at), [part])]
            message = {**message, "content": parts}
        fitted.append(message)
    return FittedMessages(fitted, sum(len(group) > 1 for group in groups))


def _sheet_parts(pictures: Sequence[_Picture], title: str) -> list[Part]:
    """Return the text and picture of one sheet; a single picture stays as it is."""
    labels = [picture.label or f"picture {number}" for number, picture in enumerate(pictures, start=1)]
    if len(pictures) == 1:
        return [{"type": "text", "text": labels[0]}, {"type": "image_url", "image_url": dict(pictures[0].image)}]
    tiles = "; ".join(f"tile {number} is {label}" for number, label in enumerate(labels, start=1))
    text = f"{title} with {len(pictures)} frames as tiles, by rows, each under its number and label: {tiles}"
    detail = {"detail": "high"} if any("detail" in picture.image for picture in pictures) else {}
    jpegs = [base64.b64decode(picture.image["url"].partition(",")[2]) for picture in pictures]
    image = {"url": data_url(draw_sheet(jpegs, labels)), **detail}
    return [{"type": "text", "text": text}, {"type": "image_url", "image_url": image}]


def draw_sheet(jpegs: Sequence[bytes], labels: Sequence[str]) -> bytes:
    """Draw pictures as tiles of one JPEG, by rows, each under its number and label; no side over `SHEET_SIDE_PX`."""
    from PIL import Image, ImageDraw, ImageFont

    columns = math.ceil(math.sqrt(len(jpegs)))
    rows = math.ceil(len(jpegs) / columns)
    tiles = []
    for jpeg in jpegs:
        with stored_picture(jpeg) as picture:
            tiles.append(picture.convert("RGB"))
        tiles[-1].thumbnail((SHEET_SIDE_PX // columns - GAP_PX, SHEET_SIDE_PX // rows - STRIP_PX))
    width, height = max(tile.width for tile in tiles) + GAP_PX, max(tile.height for tile in tiles) + STRIP_PX
    sheet = Image.new("RGB", (columns * width, rows * height), "black")
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(FONT_PX)
    for number, (tile, label) in enumerate(zip(tiles, labels, strict=True)):
        left, top, text = number % columns * width, number // columns * height, f"{number + 1}: {label}"
        while text and font.getlength(text) > width - 2 * GAP_PX:  # the message says the whole label
            text = text[:-1]
        draw.text((left + 4, top + 2), text, "white", font)
        sheet.paste(tile, (left, top + STRIP_PX))
    encoded = io.BytesIO()
    sheet.save(encoded, "JPEG", quality=JPEG_QUALITY)
    return encoded.getvalue()
