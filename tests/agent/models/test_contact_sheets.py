"""Contact sheets: which frame stands on which tile, and what is left out."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from kinodex.agent.models.endpoint import (
    GAP_PX,
    MAX_TILES,
    SHEET_SIDE_PX,
    STRIP_PX,
    count_pictures,
    draw_sheet,
    fit_pictures,
)
from kinodex.agent.prompts import Message, user_message
from tests.support.servers.wire import frame


def shown(count: int, size: tuple[int, int] = (64, 48), detail: Any = "auto") -> list[Message]:
    """A conversation: a first message with pictures, and a text after it."""
    frames = [frame(number, size=size) for number in range(1, count + 1)]
    return [user_message("Look:", frames, None, detail), {"role": "assistant", "content": "Well."}]


def parts(messages: list[Message]) -> list[Any]:
    content: Any = messages[0]["content"]
    return list(content)


def picture(part: Any) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(part["image_url"]["url"].partition(",")[2])))


def test_what_fits_stays_as_it_is() -> None:
    messages = shown(3)
    assert fit_pictures(messages, 3).messages == messages
    assert fit_pictures([{"role": "user", "content": "no picture"}], 1).sheets == 0


@pytest.mark.parametrize(
    ("count", "most", "sheets", "left_out"), [(4, 1, 1, 0), (8, 3, 3, 0), (40, 2, 2, 8), (3, 2, 1, 0)]
)
def test_pictures_are_dealt_to_as_many_sheets_as_the_server_takes(
    count: int, most: int, sheets: int, left_out: int
) -> None:
    fitted = fit_pictures(shown(count), most)
    assert (count_pictures(fitted.messages), fitted.sheets, fitted.left_out) == (most, sheets, left_out)
    text = " ".join(part["text"] for part in parts(fitted.messages) if "text" in part)
    assert text.startswith("Look: ")
    named = [number for number in range(1, count + 1) if f"frame {number} at {number}.00 s" in text]
    assert len(named) == count - left_out <= most * MAX_TILES
    assert {1, count} <= set(named), "the first and the last stay"
    assert fitted.messages[1]["content"] == "Well."


def test_the_text_says_which_tile_is_which_frame_and_the_tiles_are_in_that_order() -> None:
    [look, text, sheet] = parts(fit_pictures(shown(3, (320, 180)), 1).messages)
    assert look["text"] == "Look:"
    tiles = "; ".join(f"tile {number} is frame {number} at {number}.00 s" for number in (1, 2, 3))
    assert text["text"].endswith(f": {tiles}")
    drawn = picture(sheet).convert("RGB")
    assert drawn.size == (2 * (320 + GAP_PX), 2 * (180 + STRIP_PX))
    centres = [(160, 114), (480, 114), (160, 318)]
    reds = np.asarray(drawn)[..., 0]
    assert [round(reds[y, x] / 40) for x, y in centres] == [1, 2, 3]
    assert reds[:STRIP_PX, :320].max() > 200, "a label is drawn above the tile"


def test_a_sheet_of_large_frames_is_scaled_down_and_asked_for_at_full_detail() -> None:
    [_, _, sheet] = parts(fit_pictures(shown(16, (640, 360), "low"), 1).messages)
    assert max(picture(sheet).size) <= SHEET_SIDE_PX
    assert sheet["image_url"]["detail"] == "high"


def test_tall_frames_fit_too() -> None:
    jpegs = [frame(number, size=(300, 900)).jpeg for number in range(5)]
    assert max(Image.open(io.BytesIO(draw_sheet(jpegs, ["a"] * 5))).size) <= SHEET_SIDE_PX


def test_a_label_that_is_too_long_for_its_tile_does_not_run_into_the_next_one() -> None:
    jpegs = [frame(number, size=(160, 90)).jpeg for number in range(2)]
    long = "frame 12 at 3600.00 s (1:00:00) of video abcdef012345"
    sheets = [Image.open(io.BytesIO(draw_sheet(jpegs, [label, "b"]))) for label in ("a", long)]
    strips = [np.asarray(sheet.crop((sheet.width // 2 + 8, 0, sheet.width, STRIP_PX - 8)), float) for sheet in sheets]
    assert np.abs(strips[0] - strips[1]).max() < 40  # the noise of JPEG


def test_a_picture_without_a_label_is_numbered_and_other_texts_stay() -> None:
    content = parts(shown(2))
    content[1] = {"type": "text", "text": "A long text\nof two lines, which is no label"}
    fitted = fit_pictures([{"role": "user", "content": content}], 1)
    texts = [part["text"] for part in parts(fitted.messages) if "text" in part]
    assert texts[:2] == ["Look:", "A long text\nof two lines, which is no label"]
    assert texts[2].endswith("tile 1 is picture 1; tile 2 is frame 2 at 2.00 s")
