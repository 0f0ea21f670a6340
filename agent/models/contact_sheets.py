"""Contact sheets: several pictures as numbered tiles of one, for servers that take fewer pictures than a request has.

The rule: the pictures are dealt out in their order to as many sheets as the server takes pictures, at most `MAX_TILES`
on each. What does not fit even so is left out evenly: the first and the last picture stay. A sheet stands where its
first picture stood, after a text that says which tile is which frame; each tile has its number and label drawn above
it.
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from agent.prompts.render import JPEG_QUALITY, Message, Part, data_url

if TYPE_CHECKING:
    from PIL import Image, ImageFont

MAX_TILES = 16
SHEET_SIDE_PX = 1536
"""The longest side of a sheet: OpenAI's and Qwen's models read about that much."""
STRIP_PX, GAP_PX = 24, 4
FONT_PX = 16
LABEL_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class FittedMessages:
    """Messages with no more pictures than a server takes, the number of sheets in them, and of frames left out."""

    messages: list[Message]
    sheets: int = 0
    left_out: int = 0


class _Place(NamedTuple):
    message: int
    part: int


def count_pictures(messages: Sequence[Message]) -> int:
    """Count the pictures in chat messages."""
    return len(_places(messages))


def fit_pictures(messages: Sequence[Message], most: int) -> FittedMessages:
    """Put the pictures of messages on at most `most` sheets, if they are more; `most` is at least 1."""
    places = _places(messages)
    if len(places) <= most:
        return FittedMessages(list(messages))
    kept = _evenly(places, most * MAX_TILES)
    groups = _deal(kept, most)
    replaced: dict[_Place, list[Part]] = {place: [] for place in places}
    for number, group in enumerate(groups, start=1):
        title = f"sheet {number} of {len(groups)}" if len(groups) > 1 else "one picture"
        replaced[group[0]] = _sheet_parts([_picture(messages, place) for place in group], title)
    fitted = [
        _rewrite(message, {place.part: parts for place, parts in replaced.items() if place.message == number})
        for number, message in enumerate(messages)
    ]
    return FittedMessages(fitted, sum(len(group) > 1 for group in groups), len(places) - len(kept))


def _places(messages: Sequence[Message]) -> list[_Place]:
    return [
        _Place(number, at)
        for number, message in enumerate(messages)
        if isinstance(content := message["content"], list)
        for at, part in enumerate(content)
        if "image_url" in part
    ]


def _evenly(places: Sequence[_Place], most: int) -> list[_Place]:
    """At most so many places, at equal distances, the first and the last among them."""
    if len(places) <= most:
        return list(places)
    step = (len(places) - 1) / max(1, most - 1)
    return [places[round(number * step)] for number in range(most)]


def _deal(places: Sequence[_Place], sheets: int) -> list[Sequence[_Place]]:
    """Consecutive groups of sizes that differ by one at most."""
    cuts = [round(number * len(places) / sheets) for number in range(sheets + 1)]
    return [places[start:end] for start, end in pairwise(cuts) if end > start]


class _Labelled(NamedTuple):
    label: str
    image: Mapping[str, str]


def _picture(messages: Sequence[Message], place: _Place) -> _Labelled:
    content: Any = messages[place.message]["content"]
    return _Labelled(_label(content, place.part), content[place.part]["image_url"])


def _label(content: Sequence[Mapping[str, Any]], at: int) -> str:
    """The text right before a picture, if it is a label: one short line."""
    text = str(content[at - 1].get("text", "")) if at else ""
    return text if 0 < len(text) <= LABEL_CHARACTERS and "\n" not in text else ""


def _rewrite(message: Message, replaced: Mapping[int, list[Part]]) -> Message:
    """A message with other parts in the place of some pictures and their labels."""
    content: Any = message["content"]
    if not replaced:
        return message
    labels = {at - 1 for at in replaced if _label(content, at)}
    parts: list[Part] = []
    for at, part in enumerate(content):
        if at not in labels:
            parts += replaced.get(at, [part])
    return {**message, "content": parts}


def _sheet_parts(pictures: Sequence[_Labelled], title: str) -> list[Part]:
    """The text and picture of one sheet; a single picture stays as it is."""
    labels = [picture.label or f"picture {number}" for number, picture in enumerate(pictures, start=1)]
    if len(pictures) == 1:
        return [{"type": "text", "text": labels[0]}, {"type": "image_url", "image_url": dict(pictures[0].image)}]
    tiles = "; ".join(f"tile {number} is {label}" for number, label in enumerate(labels, start=1))
    text = f"{title} with {len(pictures)} frames as tiles, by rows, each under its number and label: {tiles}"
    detail = {"detail": "high"} if any("detail" in picture.image for picture in pictures) else {}
    image = {"url": data_url(draw_sheet([_decode(picture.image["url"]) for picture in pictures], labels)), **detail}
    return [{"type": "text", "text": text}, {"type": "image_url", "image_url": image}]


def _decode(url: str) -> bytes:
    return base64.b64decode(url.partition(",")[2])


def draw_sheet(jpegs: Sequence[bytes], labels: Sequence[str]) -> bytes:
    """Draw pictures as tiles of one JPEG, by rows, each under its number and label; no side over `SHEET_SIDE_PX`."""
    from PIL import Image, ImageDraw, ImageFont

    columns = math.ceil(math.sqrt(len(jpegs)))
    rows = math.ceil(len(jpegs) / columns)
    tiles = [_tile(jpeg, SHEET_SIDE_PX // columns - GAP_PX, SHEET_SIDE_PX // rows - STRIP_PX) for jpeg in jpegs]
    width, height = max(tile.width for tile in tiles) + GAP_PX, max(tile.height for tile in tiles) + STRIP_PX
    sheet = Image.new("RGB", (columns * width, rows * height), "black")
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(FONT_PX)
    for number, (tile, label) in enumerate(zip(tiles, labels, strict=True)):
        left, top = number % columns * width, number // columns * height
        draw.text((left + 4, top + 2), _fitting(f"{number + 1}: {label}", width - 2 * GAP_PX, font), "white", font)
        sheet.paste(tile, (left, top + STRIP_PX))
    encoded = io.BytesIO()
    sheet.save(encoded, "JPEG", quality=JPEG_QUALITY)
    return encoded.getvalue()


def _fitting(text: str, width_px: int, font: ImageFont.FreeTypeFont | ImageFont.ImageFont) -> str:
    """As much of a text's beginning as fits above a tile; the message says the whole label."""
    while font.getlength(text) > width_px and text:
        text = text[:-1]
    return text


def _tile(jpeg: bytes, width_px: int, height_px: int) -> Image.Image:
    """A picture, scaled down to fit; never up."""
    from PIL import Image

    with Image.open(io.BytesIO(jpeg)) as picture:
        tile = picture.convert("RGB")
    tile.thumbnail((width_px, height_px))
    return tile
