from __future__ import annotations

import io

import pytest

from kinodex.agent.prompts import (
    MESSAGE_TOKENS,
    Picture,
    estimate_tokens,
    message_parts,
    picture_tokens,
    text_tokens,
    user_message,
)
from kinodex.agent.protocol import ShownFrame
from tests.support.scripts import SCRIPTS, Script


@pytest.mark.parametrize(
    ("size", "detail", "tokens"),
    [
        ((512, 288), "auto", 255),
        ((512, 512), "high", 255),
        ((1024, 1024), "high", 765),
        ((2048, 4096), "high", 1105),
        ((4096, 8192), "low", 85),
        ((512, 288), "low", 85),
    ],
)
def test_openai_counts_tiles(size: tuple[int, int], detail: str, tokens: int) -> None:
    """The examples of OpenAI's own page among them: 1024 x 1024, 2048 x 4096 and 4096 x 8192 at low detail."""
    assert picture_tokens(*size, "openai", detail) == tokens


@pytest.mark.parametrize(
    ("size", "tokens"),
    [((512, 288), 18 * 10 + 2), ((28, 28), 4 + 2), ((1920, 1080), 47 * 26 + 2), ((448, 448), 16 * 16 + 2)],
)
def test_qwen_counts_patches_of_28_pixels(size: tuple[int, int], tokens: int) -> None:
    assert picture_tokens(*size, "qwen") == tokens
    assert picture_tokens(*size, "qwen", "low") == tokens


def test_a_text_is_a_token_for_four_characters() -> None:
    assert [text_tokens(text) for text in ("", "a", "four", "fives")] == [0, 1, 1, 2]


@pytest.mark.parametrize("script", SCRIPTS, ids=str)
def test_a_character_of_another_script_is_a_quarter_to_a_whole_token(script: Script) -> None:
    text = "".join(script.lines)
    assert len(text) / 4 < text_tokens(text) < len(text)


def test_messages_add_up_texts_pictures_and_marks() -> None:
    frames = [ShownFrame("v", number, float(number), 512, 288, _jpeg(512, 288)) for number in (1, 2)]
    message = user_message("What is this?", frames, None)
    parts = list(message_parts(message))
    texts = [part for part in parts if isinstance(part, str)]
    pictures = [part for part in parts if isinstance(part, Picture)]
    assert [(each.width_px, each.height_px, each.detail) for each in pictures] == [(512, 288, "auto")] * 2
    words = sum(text_tokens(text) for text in texts)
    assert estimate_tokens([message]) == MESSAGE_TOKENS + words + 2 * 255
    assert estimate_tokens([message], "qwen") == MESSAGE_TOKENS + words + 2 * 182
    assert estimate_tokens([message, {"role": "assistant", "content": "12345678"}]) == (
        2 * MESSAGE_TOKENS + words + 2 * 255 + 2
    )


def test_parts_of_another_kind_are_refused() -> None:
    with pytest.raises(ValueError, match="'video_url'"):
        list(message_parts({"role": "user", "content": [{"type": "video_url", "video_url": {}}]}))


def _jpeg(width: int, height: int) -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.new("RGB", (width, height)).save(file, "JPEG")
    return file.getvalue()
