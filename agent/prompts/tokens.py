"""Estimate the tokens of chat messages without a tokenizer: texts by their length, pictures by published rules.

A text counts one token for four bytes of UTF-8: OpenAI's rule of thumb for English, four characters, which would
count a quarter of the tokens of Chinese or Hindi. A picture counts by one of:

- openai: the tiles of GPT-4o and GPT-4.1 (OpenAI, "Images and vision", section "Calculating costs"): at low detail 85
  tokens; else the picture is fitted into 2,048 x 2,048, its shorter side into 768, and counts 85 tokens and 170 for
  each tile of 512 x 512.
- qwen: the patches of Qwen2-VL and Qwen2.5-VL (their `smart_resize`): each side to the next multiple of 28, a token
  for 28 x 28 pixels, at most 1,003,520 pixels, and two tokens around the picture. Detail plays no part.
- claude: the patches of Anthropic ("Images and vision"): a token for each begun 28 x 28 pixels, of a picture that is
  fitted into 1,568 pixels and 1,568 tokens first. Models from 4.7 on take up to 2,576 pixels and 4,784 tokens, which
  pictures of frames do not reach.
- gemini: the tiles of Gemini 2.x (Google, "Understand and count tokens"): 258 tokens for a picture of at most
  384 x 384, else for each tile of it, whose side is two thirds of the picture's shorter one, but 256 to 768 pixels.
- gemini-3: what "Media resolution" gives a picture of Gemini 3 at most by default, whatever its size: 1,120 tokens; at
  low detail 280.

`picture_rule` chooses by the name of the model; of other models pictures count as OpenAI's.

Figures of a server that reports usage are better than these; these are for planning and for comparing layouts.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from kinodex.agent.prompts.messages import Message
from kinodex.agent.prompts.parts import JPEG_URL, text_part
from kinodex.agent.prompts.rendering import render
from kinodex.agent.protocol.request import Request
from kinodex.index.pictures import stored_picture

PictureRule = Literal["openai", "qwen", "claude", "gemini", "gemini-3"]
NAMED_RULES: tuple[tuple[str, PictureRule], ...] = (
    ("qwen", "qwen"),
    ("claude", "claude"),
    ("gemini-3", "gemini-3"),
    ("gemini", "gemini"),
)
"""Rules by a part of a model's name, the first that is in it."""
CHARACTERS_A_TOKEN = 4
"""Of English, or bytes of UTF-8."""
MESSAGE_TOKENS = 4
"""Around each message: the speaker, and the marks where it begins and ends."""
LOW_DETAIL_TOKENS, TILE_TOKENS, TILE_PX = 85, 170, 512
LONGER_SIDE_PX, SHORTER_SIDE_PX = 2048, 768
PATCH_PX, MIN_PIXELS, MAX_PIXELS, MARK_TOKENS = 28, 4 * 28 * 28, 1280 * 28 * 28, 2


CLAUDE_PX, CLAUDE_TOKENS = 1568, 1568
GEMINI_SMALL_PX, GEMINI_TILE_PX, GEMINI_TOKENS = 384, (256, 768), 258
GEMINI_SIDES = 1.5
"""The shorter side of a picture, as a multiple of a tile's."""
GEMINI_3_TOKENS, GEMINI_3_LOW_TOKENS = 1120, 280


def picture_rule(model: str) -> PictureRule:
    """Return the rule by which a model counts pictures.

    >>> picture_rule("anthropic/claude-sonnet-4.5")
    'claude'
    """
    name = model.casefold()
    return next((rule for part, rule in NAMED_RULES if part in name), "openai")


def text_tokens(text: str) -> int:
    return math.ceil(len(text.encode(errors="replace")) / CHARACTERS_A_TOKEN)


def picture_tokens(width_px: int, height_px: int, rule: PictureRule = "openai", detail: str = "auto") -> int:
    """Count the tokens of a picture by a published rule; see above."""
    if rule == "qwen":
        return _patches(width_px, height_px) + MARK_TOKENS
    if rule == "claude":
        return _claude_patches(width_px, height_px)
    if rule == "gemini":
        return GEMINI_TOKENS * _gemini_tiles(width_px, height_px)
    if rule == "gemini-3":
        return GEMINI_3_LOW_TOKENS if detail == "low" else GEMINI_3_TOKENS
    if detail == "low":
        return LOW_DETAIL_TOKENS
    shrink = min(1.0, LONGER_SIDE_PX / max(width_px, height_px))
    shrink *= min(1.0, SHORTER_SIDE_PX / (shrink * min(width_px, height_px)))
    tiles = math.ceil(shrink * width_px / TILE_PX) * math.ceil(shrink * height_px / TILE_PX)
    return LOW_DETAIL_TOKENS + TILE_TOKENS * tiles


def _patches(width_px: int, height_px: int) -> int:
    width, height = (max(PATCH_PX, round(side / PATCH_PX) * PATCH_PX) for side in (width_px, height_px))
    pixels = width_px * height_px
    if width * height > MAX_PIXELS:
        scale = math.sqrt(pixels / MAX_PIXELS)
        width, height = (math.floor(side / scale / PATCH_PX) * PATCH_PX for side in (width_px, height_px))
    elif width * height < MIN_PIXELS:
        scale = math.sqrt(MIN_PIXELS / pixels)
        width, height = (math.ceil(side * scale / PATCH_PX) * PATCH_PX for side in (width_px, height_px))
    return max(1, width // PATCH_PX) * max(1, height // PATCH_PX)


def _claude_patches(width_px: int, height_px: int) -> int:
    """Count the patches of a picture, which is as large as the limits of pixels and of tokens allow."""
    longer, shorter = max(width_px, height_px), min(width_px, height_px)
    for side in range(min(longer, CLAUDE_PX), 0, -1):
        tokens = math.ceil(side / PATCH_PX) * math.ceil(max(1, round(side * shorter / longer)) / PATCH_PX)
        if tokens <= CLAUDE_TOKENS:
            return tokens
    return 1


def _gemini_tiles(width_px: int, height_px: int) -> int:
    if max(width_px, height_px) <= GEMINI_SMALL_PX:
        return 1
    least, most = GEMINI_TILE_PX
    side = min(most, max(least, math.floor(min(width_px, height_px) / GEMINI_SIDES)))
    return math.ceil(width_px / side) * math.ceil(height_px / side)


def estimate_tokens(messages: Sequence[Message], rule: PictureRule = "openai") -> int:
    contents = (message["content"] for message in messages)
    parts = (part for each in contents for part in (each if isinstance(each, list) else [text_part(str(each))]))
    return MESSAGE_TOKENS * len(messages) + sum(_part_tokens(part, rule) for part in parts)


def _part_tokens(part: Mapping[str, Any], rule: PictureRule) -> int:
    if "image_url" not in part:
        return text_tokens(part["text"])
    image = part["image_url"]
    with stored_picture(base64.b64decode(image["url"].removeprefix(JPEG_URL))) as picture:
        return picture_tokens(*picture.size, rule, image.get("detail", "auto"))  # reads the head alone


def estimate_request(request: Request[Any]) -> int:
    """Estimate the input tokens of a request, whatever the limits of its role are."""
    texts = [render(request), request.complaint, request.bad_reply, *(turn.text for turn in request.turns)]
    frames = [picture_tokens(each.width_px, each.height_px, detail=each.detail) for each in request.frames]
    return MESSAGE_TOKENS * len(texts) + sum(map(text_tokens, texts)) + sum(frames)
