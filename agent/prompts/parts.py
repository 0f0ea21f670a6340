"""Parts of a chat message: texts, and frames, each as a label and a picture no larger than is wanted."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence

from kinodex.agent.prompts.times import beside
from kinodex.agent.protocol.frames import Detail, ShownFrame, citation_numbers
from kinodex.agent.protocol.videos import VIDEO_ID_LENGTH, Video
from kinodex.index.pictures import stored_picture

Part = dict[str, object]
JPEG_QUALITY = 85
JPEG_URL = "data:image/jpeg;base64,"
LOW_SIDE_PX = 512
"""The longer side of a picture at low detail, in which OpenAI reads one for 85 tokens; at 336 rules lost answers."""


def text_part(text: str) -> Part:
    return {"type": "text", "text": text}


def frame_parts(
    labels: Sequence[str],
    frames: Sequence[ShownFrame],
    side_px: int | None,
    detail: Detail,
    noted: Sequence[Sequence[str]] = (),
) -> list[Part]:
    parts: list[Part] = []
    for at, (label, frame) in enumerate(zip(labels, frames, strict=True)):
        parts += map(text_part, noted[at] if noted else ())
        level = detail if frame.detail == "auto" else frame.detail
        limit = LOW_SIDE_PX if level == "low" and (side_px is None or side_px > LOW_SIDE_PX) else side_px
        picture = {"url": data_url(scaled_jpeg(frame, limit))} | ({} if level == "auto" else {"detail": level})
        parts += [text_part(label), {"type": "image_url", "image_url": picture}]
    return parts


def frame_labels(frames: Sequence[ShownFrame], videos: Sequence[Video] = ()) -> list[str]:
    """Return the text before each frame: its number (as evidence cites it), its time and, of several videos, its video.

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


def scaled_jpeg(frame: ShownFrame, side_px: int | None) -> bytes:
    """Return the frame's own JPEG, re-encoded only if its longest side is over `side_px`."""
    if side_px is None or max(frame.width_px, frame.height_px) <= side_px:
        return frame.jpeg
    smaller = io.BytesIO()
    with stored_picture(frame.jpeg) as image:
        image.draft("RGB", (side_px, side_px))  # decodes straight to the nearest larger size
        image.thumbnail((side_px, side_px))
        image.save(smaller, "JPEG", quality=JPEG_QUALITY)
    return smaller.getvalue()


def data_url(jpeg: bytes) -> str:
    return JPEG_URL + base64.b64encode(jpeg).decode("ascii")
