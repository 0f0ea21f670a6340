"""Prompts of requests: the text, rendered from a template of agent/prompts/templates, and the chat messages with it.

Frames stand as JPEG data URLs, each after its label, where the template includes `_frames.jinja`; else after the text.
Conversations are laid out for the prefix caches of servers: a template begins with what no request of a run changes,
then come the frames in the order of their arrival, then what varies.
"""

from __future__ import annotations

import base64
import hashlib
import io
import secrets
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from agent.core.protocol import Detail, R, Request, ShownFrame, Turn, citation_numbers
from agent.core.question import VIDEO_ID_LENGTH, Video
from agent.prompts.reply_line import reply_line
from agent.prompts.segments import candidate_lines, history_lines, newness, parent_score, segment_line
from agent.prompts.times import beside, beside_range

if TYPE_CHECKING:
    from jinja2 import Environment, Template

Part = dict[str, object]
Message = dict[str, object]

FOLDER = Path(__file__).parent / "templates"
JPEG_QUALITY = 85
LOW_SIDE_PX = 512
"""The longer side of a picture at low detail, in which OpenAI reads one for 85 tokens; at 336 rules lost answers."""
_PICTURES = f"\0{secrets.token_hex(8)}\0"
"""The place of the frames in a rendered template; no text of a question can hold it, since it is of this process."""


def render(request: Request[R], *, reasoning: bool = True) -> str:
    """Render the prompt of a request as one text, with the labels of the frames in the place of their pictures.

    Without `reasoning` the model is not asked to write down its reasons.
    """
    before, after = _texts_around_frames(request, reasoning)
    labels = "\n".join(f"[{label}]" for label in _labels(request))
    return "\n\n".join(part for part in (before, labels, after) if part)


def request_message(
    request: Request[R], side_px: int | None, detail: Detail = "auto", *, reasoning: bool = True, joint: bool = False
) -> Message:
    """The first message of a request: the text before the frames, each frame after its label, and the text after.

    Plain text if there are no frames. Frames are scaled down to `side_px`, unless None. `joint`: the reply is asked
    for in the joint schema of its run, where it has one (`agent.core.joint_schema`).
    """
    detail = detail if request.detail == "auto" else request.detail
    before, after = _texts_around_frames(request, reasoning, joint)
    if not request.frames:
        return {"role": "user", "content": "\n\n".join(part for part in (before, after) if part)}
    parts = [_text_part(before), *_frame_parts(_labels(request), request.frames, side_px, detail)]
    return {"role": "user", "content": [*parts, _text_part(after)] if after else parts}


def _texts_around_frames(request: Request[R], reasoning: bool, joint: bool = False) -> tuple[str, str]:
    """The text before the frames and the one after them, which is empty if the template does not say their place."""
    text = _template(request.template).render(request=request, pictures=_PICTURES, reasoning=reasoning, joint=joint)
    before, _, after = text.partition(_PICTURES)
    return before.strip(), after.strip()


def _labels(request: Request[R]) -> list[str]:
    """The labels of a request's frames; they name the video if the request is about several, whichever is shown."""
    return frame_labels(request.frames, getattr(request, "videos", ()))


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
    templates.globals["reply_line"] = reply_line
    templates.globals["clock_range"] = beside_range
    for function in (candidate_lines, history_lines, newness, parent_score, segment_line):
        templates.globals[function.__name__] = function
    templates.globals["note_numbers"] = lambda request: citation_numbers(request.frames, request.notes)[1]
    templates.filters["video"] = lambda video_id: video_id[:VIDEO_ID_LENGTH]
    return templates


def user_message(text: str, frames: Sequence[ShownFrame], side_px: int | None, detail: Detail = "auto") -> Message:
    """One user message; plain text if there are no frames. Frames are scaled down to `side_px`, unless None.

    `detail` is for frames that have none of their own; "auto" is left off the wire.
    """
    if not frames:
        return {"role": "user", "content": text}
    return {"role": "user", "content": [_text_part(text), *_frame_parts(frame_labels(frames), frames, side_px, detail)]}


def _text_part(text: str) -> Part:
    return {"type": "text", "text": text}


def _frame_parts(
    labels: Sequence[str], frames: Sequence[ShownFrame], side_px: int | None, detail: Detail
) -> list[Part]:
    parts: list[Part] = []
    for label, frame in zip(labels, frames, strict=True):
        level = detail if frame.detail == "auto" else frame.detail
        limit = LOW_SIDE_PX if level == "low" and (side_px is None or side_px > LOW_SIDE_PX) else side_px
        picture = {"url": data_url(scaled_jpeg(frame, limit))} | ({} if level == "auto" else {"detail": level})
        parts += [_text_part(label), {"type": "image_url", "image_url": picture}]
    return parts


def frame_labels(frames: Sequence[ShownFrame], videos: Sequence[Video] = ()) -> list[str]:
    """The text before each frame: its number (as evidence cites it), its time and, of several videos, its video.

    `videos` are those that a request is about: a label then stays the same whichever frames stand beside it.
    """
    numbers, _ = citation_numbers(frames)
    labels = [
        f"frame {number} at {frame.time_s:.2f} s{beside(frame.time_s)}"
        for number, frame in zip(numbers, frames, strict=True)
    ]
    if len({each.video_id for each in videos} | {each.video_id for each in frames}) <= 1:
        return labels
    ids = [frame.video_id[:VIDEO_ID_LENGTH] for frame in frames]
    return [f"{label} of video {video_id}" for label, video_id in zip(labels, ids, strict=True)]


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
    return [_hash_picture(part["image_url"]) if "image_url" in part else part for part in content]


def _hash_picture(image: Mapping[str, str]) -> dict[str, str]:
    others = {name: value for name, value in image.items() if name != "url"}
    return {"picture": hashlib.sha256(image["url"].encode()).hexdigest(), **others}


def data_url(jpeg: bytes) -> str:
    """A JPEG as a data URL."""
    return "data:image/jpeg;base64," + base64.b64encode(jpeg).decode("ascii")
