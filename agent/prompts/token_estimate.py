"""Estimate the tokens of chat messages without a tokenizer: texts by their length, pictures by published rules.

A text counts one token for four bytes of UTF-8: OpenAI's rule of thumb for English, four characters, which would count
a quarter of the tokens of Chinese or Hindi. A picture counts by one of:

- openai: the tiles of GPT-4o and GPT-4.1 (OpenAI, "Images and vision", section "Calculating costs"): at low detail 85
  tokens; else the picture is fitted into 2,048 x 2,048, its shorter side into 768, and counts 85 tokens and 170 for
  each tile of 512 x 512.
- qwen: the patches of Qwen2-VL and Qwen2.5-VL (their `smart_resize`): each side to the next multiple of 28, a token for
  28 x 28 pixels, at most 1,003,520 pixels, and two tokens around the picture. Detail plays no part.

Figures of a server that reports usage are better than these; these are for planning and for comparing layouts.
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from agent.prompts.render import Message

PictureRule = Literal["openai", "qwen"]
CHARACTERS_A_TOKEN = 4
"""Of English, or bytes of UTF-8."""
MESSAGE_TOKENS = 4
"""Around each message: the speaker, and the marks where it begins and ends."""
LOW_DETAIL_TOKENS, TILE_TOKENS, TILE_PX = 85, 170, 512
LONGER_SIDE_PX, SHORTER_SIDE_PX = 2048, 768
PATCH_PX, MIN_PIXELS, MAX_PIXELS, MARK_TOKENS = 28, 4 * 28 * 28, 1280 * 28 * 28, 2
JPEG_URL = "data:image/jpeg;base64,"


class Picture(NamedTuple):
    """A picture in a message: its data URL, its size, and the detail that is asked for."""

    url: str
    width_px: int
    height_px: int
    detail: str = "auto"


def text_tokens(text: str) -> int:
    """Estimate the tokens of a text: a quarter of its bytes, rounded up."""
    return math.ceil(len(text.encode(errors="replace")) / CHARACTERS_A_TOKEN)


def picture_tokens(width_px: int, height_px: int, rule: PictureRule = "openai", detail: str = "auto") -> int:
    """Count the tokens of a picture by a published rule; see above."""
    if rule == "qwen":
        return _patches(width_px, height_px) + MARK_TOKENS
    if detail == "low":
        return LOW_DETAIL_TOKENS
    shrink = min(1.0, LONGER_SIDE_PX / max(width_px, height_px))
    shrink *= min(1.0, SHORTER_SIDE_PX / (shrink * min(width_px, height_px)))
    tiles = math.ceil(shrink * width_px / TILE_PX) * math.ceil(shrink * height_px / TILE_PX)
    return LOW_DETAIL_TOKENS + TILE_TOKENS * tiles


def _patches(width_px: int, height_px: int) -> int:
    """Count the patches of 28 x 28 pixels after the resize to between `MIN_PIXELS` and `MAX_PIXELS`."""
    width, height = (max(PATCH_PX, round(side / PATCH_PX) * PATCH_PX) for side in (width_px, height_px))
    pixels = width_px * height_px
    if width * height > MAX_PIXELS:
        scale = math.sqrt(pixels / MAX_PIXELS)
        width, height = (math.floor(side / scale / PATCH_PX) * PATCH_PX for side in (width_px, height_px))
    elif width * height < MIN_PIXELS:
        scale = math.sqrt(MIN_PIXELS / pixels)
        width, height = (math.ceil(side * scale / PATCH_PX) * PATCH_PX for side in (width_px, height_px))
    return max(1, width // PATCH_PX) * max(1, height // PATCH_PX)


def message_parts(message: Message) -> Iterator[str | Picture]:
    """Take a message apart: its texts and pictures, in order. Raises ValueError for a part of another kind."""
    content = message["content"]
    if not isinstance(content, list):
        yield str(content)
        return
    for part in content:
        if part["type"] == "text":
            yield part["text"]
        elif part["type"] == "image_url":
            image = part["image_url"]
            yield Picture(image["url"], *_size(image["url"]), image.get("detail", "auto"))
        else:
            raise ValueError(f"got a part of type {part['type']!r}; the types are text and image_url")


def _size(url: str) -> tuple[int, int]:
    from PIL import Image

    with Image.open(io.BytesIO(base64.b64decode(url.removeprefix(JPEG_URL)))) as picture:  # reads the head alone
        return picture.size


def estimate_tokens(messages: Sequence[Message], rule: PictureRule = "openai") -> int:
    """Estimate the input tokens of chat messages."""
    return sum(
        MESSAGE_TOKENS
        + sum(
            text_tokens(part)
            if isinstance(part, str)
            else picture_tokens(part.width_px, part.height_px, rule, part.detail)
            for part in message_parts(message)
        )
        for message in messages
    )
