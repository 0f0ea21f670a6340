"""Stored frames as content of an MCP reply: each picture after its number and time."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from mcp.types import ContentBlock, ImageContent

from kinodex.index.rows import StoredFrame, VideoRow
from kinodex.jobs.library import shrunk_jpeg
from kinodex.mcp.replies import IMAGE_BYTES, SIDE_PX, FrameLabel, FramesHeading, as_json

JPEG_QUALITY = 85


def image_blocks(
    video: VideoRow, stored: Sequence[StoredFrame], side_px: int, left_out: str | None = None
) -> list[ContentBlock]:
    frames = list({frame.frame_no: frame for frame in stored}.values())
    side = min(side_px, SIDE_PX)
    shown: list[ContentBlock] = []
    left = IMAGE_BYTES
    for frame in frames:
        jpeg = shrunk_jpeg(frame, side, JPEG_QUALITY)
        left -= len(jpeg)
        if left < 0:
            break
        data = base64.b64encode(jpeg).decode("ascii")
        shown += [as_json(FrameLabel(frame_no=frame.frame_no, time_s=frame.time_s))]
        shown += [ImageContent(type="image", data=data, mime_type="image/jpeg")]
    cuts = [left_out] if left_out else []
    cuts += [f"pictures are at most {SIDE_PX} pixels a side"] if side_px > SIDE_PX else []
    fit = len(shown) // 2
    cuts += [f"{fit} of {len(frames)} pictures fit; ask with a smaller side_px"] if fit < len(frames) else []
    heading = FramesHeading(video_id=video.video_id, title=video.title, frames=fit, cut="; ".join(cuts) or None)
    return [as_json(heading), *shown]
