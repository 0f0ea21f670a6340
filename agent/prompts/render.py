"""Prompts of requests: the text, rendered from a template of agent/prompts/templates, and the chat messages with it.

Frames follow the text as JPEG data URLs, each after its time.
"""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from agent.core.protocol import R, Request, ShownFrame, Turn

if TYPE_CHECKING:
    from jinja2 import Environment, Template

Part = dict[str, object]
Message = dict[str, object]

FOLDER = Path(__file__).parent / "templates"
VIDEO_ID_LENGTH = 12
"""The number of characters of a video's id that name it to a model."""
JPEG_QUALITY = 85


def render(request: Request[R]) -> str:
    """Render the prompt of a request. It names frames by number and time; their pictures follow it in that order."""
    return _template(request.template).render(request=request).strip()


@cache
def _template(name_or_text: str) -> Template:
    """Load a template of the folder by its name, or one given as text, which may include those of the folder."""
    if "\n" in name_or_text:
        return _templates().from_string(name_or_text)
    return _templates().get_template(f"{name_or_text}.jinja")


@cache
def _templates() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    templates = Environment(
        loader=FileSystemLoader(FOLDER),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["one_line"] = lambda text: " ".join(text.split())
    templates.filters["seconds"] = lambda time_s: f"{time_s:.1f} s"
    templates.filters["video"] = lambda video_id: video_id[:VIDEO_ID_LENGTH]
    return templates


def user_message(text: str, frames: Sequence[ShownFrame], side_px: int | None) -> Message:
    """One user message; plain text if there are no frames. Frames are scaled down to `side_px`, unless None."""
    if not frames:
        return {"role": "user", "content": text}
    parts: list[Part] = [{"type": "text", "text": text}]
    for label, frame in zip(frame_labels(frames), frames, strict=True):
        url = data_url(scaled_jpeg(frame, side_px))
        parts += [{"type": "text", "text": label}, {"type": "image_url", "image_url": {"url": url}}]
    return {"role": "user", "content": parts}


def frame_labels(frames: Sequence[ShownFrame]) -> list[str]:
    """The text before each frame: its number among those shown (as evidence cites it), time and video."""
    labels = [f"frame {number} at {frame.time_s:.2f} s" for number, frame in enumerate(frames, start=1)]
    if len({frame.video_id for frame in frames}) <= 1:
        return labels
    videos = [frame.video_id[:VIDEO_ID_LENGTH] for frame in frames]
    return [f"{label} of video {video}" for label, video in zip(labels, videos, strict=True)]


def turn_messages(turns: Sequence[Turn]) -> list[Message]:
    """Messages of a conversation after the first one."""
    return [{"role": turn.speaker, "content": turn.text} for turn in turns]


def join_turns(messages: Sequence[Message]) -> list[Message]:
    """Join neighbouring messages of one speaker: many chat templates refuse two in a row."""
    joined: list[Message] = []
    for message in messages:
        if joined and joined[-1]["role"] == message["role"]:
            joined[-1] = append_text(joined[-1], str(message["content"]))
        else:
            joined.append(message)
    return joined


def scaled_jpeg(frame: ShownFrame, side_px: int | None) -> bytes:
    """The frame's own JPEG, re-encoded only if its longest side is over `side_px`."""
    if side_px is None or max(frame.width_px, frame.height_px) <= side_px:
        return frame.jpeg
    from PIL import Image

    smaller = io.BytesIO()
    with Image.open(io.BytesIO(frame.jpeg)) as image:
        image.draft("RGB", (side_px, side_px))  # decodes straight to the nearest larger size
        image.thumbnail((side_px, side_px))
        image.save(smaller, "JPEG", quality=JPEG_QUALITY)
    return smaller.getvalue()


def append_text(message: Message, text: str) -> Message:
    """Add a paragraph at the end of a message."""
    content = message["content"]
    if isinstance(content, list):
        return {**message, "content": [*content, {"type": "text", "text": text}]}
    return {**message, "content": f"{content}\n\n{text}"}


def hash_pictures(messages: Sequence[Message]) -> list[Message]:
    """Put a hash in the place of each picture: the result is equal exactly when the messages are."""
    return [{**message, "content": _hash_parts(message["content"])} for message in messages]


def _hash_parts(content: object) -> object:
    if not isinstance(content, list):
        return content
    return [
        {"picture": hashlib.sha256(part["image_url"]["url"].encode()).hexdigest()} if "image_url" in part else part
        for part in content
    ]


def data_url(jpeg: bytes) -> str:
    """A JPEG as a data URL."""
    return "data:image/jpeg;base64," + base64.b64encode(jpeg).decode("ascii")
